"""How an ERM training step scales: with the batch, with the size of graphs, and with the size of the data set.

    python benchmarks/scaling.py [--repetitions 5] [--tiny]

The sides of ``erm_step.py``: the harness, PyG's usual loop, and the step's matrix products alone, in microseconds of
processor time for each graph of a step, on one thread, medians over turns of several steps.

* ``batch``: SPMotif in batches of 8 to 512 graphs. What a step costs whatever its size is shared by more graphs.
* ``graph``: random graphs of 10 to 3,000 nodes, every node with two edges in both directions, in batches of 32. Per
  *node* it should fall to a constant.
* ``data``: SPMotif drawn 1,000 to 64,000 graphs large, batches of 32 from all of it. It should not depend on it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from erm_step import measure, ours, products, pyg

from harness import PackedGraphs, RawGraph
from plugins.datasets.spmotif import SPMotif

HIDDEN = 32


def spmotif(count: int) -> list[RawGraph]:
    """So many SPMotif graphs."""
    return list(SPMotif(num_per_class=[-(-count // 3), 1, 1]).build(None).splits["train"][:count])


def random_graphs(count: int, nodes: int) -> list[RawGraph]:
    """Graphs of so many nodes; each node is joined to two random ones, in both directions, and has four features."""
    rng = np.random.default_rng(nodes)
    graphs = []
    for number in range(count):
        ends = np.stack([np.repeat(np.arange(nodes), 2), rng.integers(nodes, size=2 * nodes)])
        graphs.append(
            RawGraph(
                x=rng.random((nodes, 4), dtype=np.float32),
                edge_index=np.concatenate([ends, ends[::-1]], axis=1).astype(np.int64),
                y=number % 3,
            )
        )
    return graphs


def packed(raw: Sequence[RawGraph]) -> PackedGraphs:
    """The graphs packed, with their labels."""
    graphs = PackedGraphs.pack(raw)
    graphs.y = torch.tensor([graph.y for graph in raw])
    return graphs


def row(what: str, raw: Sequence[RawGraph], batch: int, repetitions: int, turn: int) -> str:
    """A line of the table: microseconds a graph of each side, and the two ratios."""
    graphs = packed(raw)
    nodes = graphs.x.size(0) / len(graphs)
    sides = {
        "ours": ours(graphs, HIDDEN, ahead=True, size=batch),
        "PyG": pyg(raw, HIDDEN, fused=False, size=batch),
        "products": products(graphs, HIDDEN, size=batch),
    }
    times = measure(sides, repetitions, turn)
    found = {name: statistics.median(values) / batch * 1e3 for name, values in times.items()}
    shown = "".join(f"{value:>10.1f}" for value in found.values())
    ratios = f"{found['PyG'] / found['ours']:>11.2f}{found['ours'] / found['products']:>16.2f}"
    return f"{what:<24}{nodes:>8.1f}{shown}{found['ours'] / nodes:>12.2f}{ratios}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="shrink everything, to see whether the script works")
    given = parser.parse_args()
    torch.set_num_threads(1)
    tiny = given.tiny
    print(f"microseconds a graph of an ERM step, GIN 3x{HIDDEN}, one thread")
    print(
        f"{'':<24}{'nodes':>8}{'ours':>10}{'PyG':>10}{'products':>10}{'ours/node':>12}{'PyG/ours':>11}{'ours/products':>16}"
    )
    few = spmotif(64 if tiny else 4096)
    for batch in (8, 32) if tiny else (8, 32, 128, 512):
        print(row(f"batch of {batch}", few, batch, given.repetitions, max(2, 512 // batch)), flush=True)
    for nodes in (10, 30) if tiny else (10, 30, 100, 300, 1000, 3000):
        count = 64 if nodes < 1000 else 32
        print(row(f"graphs of {nodes} nodes", random_graphs(count, nodes), 32, given.repetitions, 4), flush=True)
    for count in (64, 128) if tiny else (1_000, 4_000, 16_000, 64_000):
        print(row(f"{count:,} graphs", spmotif(count), 32, given.repetitions, 16), flush=True)


if __name__ == "__main__":
    main()
