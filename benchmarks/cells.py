"""What the harness adds to a cell: many cells of a learner that computes nothing, and the parent's memory.

    python benchmarks/cells.py [--cells 1000 10000] [--engines inline 1 2]

A cell is a training of one epoch and its score, on a two-piece set of forty graphs, so that next to nothing is left but
the harness: reading the data, predicting, files, checksums, leases, scheduling, progress, results and report. Each run
has a process of its own, in a fresh store whose dataset is built beforehand.

* ``inline``: everything in one process. Wall and processor time of a cell, of which inside its two stages; the
  first cell, which loads torch, is left out.
* ``1``, ``2``: as many workers; processor time is that of the parent and of the stages in workers.

Memory is the parent's: resident before the first stage, and the growth per thousand cells while stages run (the plan is
there from the start). ``--tiny`` shrinks everything, to see whether the script works.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from overhead import EMPTY, EMPTY_SUITE  # noqa: E402 - from this folder

from harness.engine import EngineOptions, Event  # noqa: E402
from harness.run.execute import execute  # noqa: E402
from harness.run.session import Options, open_session  # noqa: E402
from harness.suite import Overrides  # noqa: E402

SMALL = EMPTY_SUITE.replace("[600, 200, 300]", "[20, 10, 10]")
MIB = 1 << 20


def resident() -> float:
    """MiB of this process in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def options_for(store: str, first: int, count: int) -> Options:
    """Cells of so many seeds."""
    seeds = ",".join(str(seed) for seed in range(first, first + count))
    return Options(store=Path(store), overrides=Overrides(seeds=seeds))


def run_once(suite: str, store: str, engine: str, cells: int) -> dict[str, Any]:
    """Run so many cells in this process."""
    chosen = EngineOptions("inline") if engine == "inline" else EngineOptions("processes", jobs=int(engine))
    first = options_for(store, 0, 1)
    execute(open_session(suite, first), chosen, lambda _: None)
    given = options_for(store, 1, cells)
    wall, parent, inside, in_workers = time.perf_counter(), time.process_time(), 0.0, 0.0
    session = open_session(suite, given)
    memory: list[float] = []

    def watch(event: Event) -> None:
        nonlocal inside, in_workers
        if event.kind == "finished":
            inside += event.detail["cpu"]
            in_workers += event.detail["cpu"] if event.worker not in ("inline", "parent") else 0.0
            if len(memory) < 3 or event.stage.kind == "score":
                memory.append(resident())

    outcome = execute(session, chosen, watch)
    if outcome.exit_code:
        raise SystemExit(f"the run failed: {dict(outcome.record.failures)}")
    settled = memory[len(memory) // 10]
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - parent + in_workers,
        "inside": inside,
        "before": memory[0],
        "growth": (memory[-1] - settled) / (0.9 * cells) * 1000,
        "after": resident(),
    }


def measure(folder: Path, engine: str, cells: int) -> None:
    """One run in a process of its own."""
    (folder / "empty.py").write_text(EMPTY, encoding="utf-8")
    suite = folder / "empty.yaml"
    suite.write_text(SMALL, encoding="utf-8")
    words = [sys.executable, __file__, "--one", str(suite), str(folder / f"store-{engine}-{cells}"), engine, str(cells)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    name = "inline" if engine == "inline" else f"{engine} worker{'s' * (engine != '1')}"
    each = {part: found[part] / cells * 1e3 for part in ("wall", "cpu", "inside")}
    print(
        f"{name:9} {cells:>6,} cells: {each['wall']:6.1f} ms wall and {each['cpu']:5.1f} ms processor a cell "
        f"({each['inside']:.1f} in its stages); parent {found['before']:.0f} MiB, "
        f"{found['growth']:+.2f} MiB per thousand cells, {found['after']:.0f} MiB after the report",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", type=int, default=[1_000, 10_000])
    parser.add_argument("--engines", nargs="+", choices=("inline", "1", "2"), default=("inline", "1", "2"))
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--one", nargs=4, metavar=("SUITE", "STORE", "ENGINE", "CELLS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.pop("BENCH_STORE", None)
    if options.one:
        suite, store, engine, cells = options.one
        print(json.dumps(run_once(suite, store, engine, int(cells))))
        return
    for cells in (20,) if options.tiny else options.cells:
        for engine in options.engines:
            with tempfile.TemporaryDirectory() as name:
                measure(Path(name), engine, cells)


if __name__ == "__main__":
    main()
