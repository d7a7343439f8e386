"""Time of making data sets, before anything is stored.

    python benchmarks/datasets.py [--repetitions 5] [--data-dir FOLDER]

Generated sets at their published size, on one core: the bar is 8 s for SPMotif's 15,000 graphs. Sets that are read from
the data folder, in as many processes as there are cores: the bar is 15 s for DrugOOD's EC50 (12,661 molecules) on two.
Medians of processor time, which does not count the processes, and of wall time; a set whose files are absent is told.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import numpy  # noqa: F401  its import is not what is measured

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Dataset, UserError
from plugins.datasets.drugood import DrugOOD
from plugins.datasets.good_motif import GOODMotif
from plugins.datasets.mspmotif import MSPMotif
from plugins.datasets.ogb import OGB
from plugins.datasets.spmotif import SPMotif
from plugins.datasets.spmotif_large_invariant import LargeInvariant
from plugins.datasets.two_piece import TwoPiece


def datasets() -> dict[str, Dataset]:
    """What to make, by the title of its line."""
    return {
        "spmotif": SPMotif(),
        "spmotif, variant dir": SPMotif(variant="dir"),
        "two-piece": TwoPiece(),
        "mspmotif": MSPMotif(),
        "spmotif-large-invariant": LargeInvariant(),
        "good-motif": GOODMotif(),
        "drugood, EC50 assay, with iid": DrugOOD(iid=True),
        "ogb, bace, from OGB's folder": OGB(source="ogb"),
        "ogb, bace, from the table": OGB(source="csv"),
    }


def measure(dataset: Dataset, data_dir: Path | None, repetitions: int) -> str:
    """Number of graphs, and medians of the two times."""
    processor, wall, graphs = [], [], 0
    for _ in range(repetitions):
        starts = time.process_time(), time.perf_counter()
        raw = dataset.build(data_dir)
        processor.append(time.process_time() - starts[0])
        wall.append(time.perf_counter() - starts[1])
        graphs = sum(map(len, raw.splits.values()))
    return f"{graphs:>8}{statistics.median(processor):>12.2f} s{statistics.median(wall):>8.2f} s"


def main() -> None:
    """Print a line per data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("BENCH_DATA"))
    given = parser.parse_args()
    data_dir = None if given.data_dir is None else Path(given.data_dir)
    print(f"{'set':<35}{'graphs':>8}{'processor':>14}{'wall':>10}")
    for title, dataset in datasets().items():
        try:
            dataset.files(data_dir)
        except UserError as error:
            print(f"{title:<35}{str(error).partition(chr(10))[0]}")
        else:
            print(f"{title:<35}{measure(dataset, data_dir, given.repetitions)}")


if __name__ == "__main__":
    main()
