"""Time of MVGRL encoding on SPMotif, per graph and epoch: ours, PyGCL's own loop, and the matrix products alone.

    python benchmarks/mvgrl.py [--repetitions 5] [--graphs 1024] [--hidden 32] [--layers 3]

One thread; GIN in EQuAD's flavour, sum readout, shared residual projections, the graph itself against its PageRank
diffusion, batches of 32 and 128 from a fresh shuffle. PyGCL's side is the loop of its MVGRL graph example: a
``PPRDiffusion`` augmentor, ``DualBranchContrast`` between graphs and nodes with ``JSD``, PyG's ``DataLoader``, with
the same network. All sides take turns, and the figures are medians over the repetitions. Time is CPU time, which on
one thread is the wall time of an otherwise idle machine. Our one diffusion of the split is timed apart and its share
at 150 epochs printed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import Features, PackedGraphs, RawGraph
from harness.graphs import DiffusedGraphs, Diffusion
from harness.randomness import generator
from plugins.datasets.spmotif import SPMotif
from plugins.encoders.mvgrl import MVGRL, Residual

BATCHES = (32, 128)
EPOCHS = 150
Side = Callable[[], int]
"""Trains for a while and returns the number of graphs it has seen."""


class PyGGIN(nn.Module):
    """The same network from PyG's parts: ReLU on the message by handing GINConv a pair of (source, target) rows."""

    def __init__(self, in_dim: int, hidden: int, layers: int) -> None:
        from torch_geometric.nn import GINConv

        super().__init__()
        widths = [in_dim] + [hidden] * (layers - 1)
        self.convs = nn.ModuleList(GINConv(_mlp(width, hidden), train_eps=True) for width in widths)

    def forward(self, x: Tensor, edge_index: Tensor, owner: Tensor) -> tuple[Tensor, Tensor]:
        """(N, hidden) node vectors and (B, hidden) sums."""
        from torch_geometric.nn import global_add_pool

        for conv in self.convs:
            x = conv((x.relu(), x), edge_index)
        return x, global_add_pool(x, owner)


def _mlp(in_dim: int, hidden: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(in_dim, 2 * hidden), nn.BatchNorm1d(2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, hidden)
    )


def ours(graphs: PackedGraphs, batch: int, hidden: int, layers: int) -> Side:
    """Whole epochs of the encoder; the first call also diffuses the split."""
    encoder = MVGRL(batch_size=batch, hidden=hidden, layers=layers, snapshots=list(range(1, 1000)))
    encoder.node_features, encoder.rng = Features("numeric", (graphs.x.size(1),)), generator(0, "method")
    training = encoder.fit(graphs)

    def side() -> int:
        next(training)
        return len(graphs)

    return side


def pygcl(graphs: Sequence[RawGraph], batch: int, hidden: int, layers: int, batches: int) -> Side:
    """A few batches of PyGCL's loop."""
    import GCL
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader

    data = [Data(x=torch.from_numpy(g.x), edge_index=torch.from_numpy(g.edge_index)) for g in graphs]
    loader = DataLoader(data, batch_size=batch, shuffle=True, drop_last=True)
    augment = GCL.augmentors.PPRDiffusion(alpha=0.2, use_cache=False)
    contrast = GCL.models.DualBranchContrast(loss=GCL.losses.JSD(), mode="G2L")
    encoders = nn.ModuleList(PyGGIN(graphs[0].x.shape[1], hidden, layers) for _ in range(2))
    projections = nn.ModuleList(Residual(hidden) for _ in range(2))
    optimizer = torch.optim.Adam([*encoders.parameters(), *projections.parameters()], lr=1e-3)
    stream = _forever(loader)

    def side() -> int:
        for item in islice(stream, batches):
            optimizer.zero_grad()
            x, edge_index, _ = augment(item.x, item.edge_index)
            h1, g1 = encoders[0](item.x, item.edge_index, item.batch)
            h2, g2 = encoders[1](x, edge_index, item.batch)
            h1, h2, g1, g2 = projections[0](h1), projections[0](h2), projections[1](g1), projections[1](g2)
            loss = contrast(h1=h1, h2=h2, g1=g1, g2=g2, batch=item.batch)
            loss.backward()
            optimizer.step()
            loss.item()
        return batch * batches

    return side


def _forever(loader: Iterable[Any]) -> Iterator[Any]:
    while True:
        yield from loader


def products(graphs: PackedGraphs, batch: int, hidden: int, layers: int) -> Side:
    """The dense products of one step alone, forward and backward, at the mean batch size, for a few steps."""
    nodes = graphs.x.size(0) * batch // len(graphs)
    width = nodes // batch
    convs = [(nodes, hidden, 2 * hidden), (nodes, 2 * hidden, hidden)] * layers
    convs[0] = (nodes, graphs.x.size(1), 2 * hidden)
    shapes = [*convs, *[(nodes, hidden, hidden)] * 4, *[(batch, hidden, hidden)] * 4, (batch, hidden, nodes)] * 2
    operands = [(torch.randn(n, i), torch.randn(o, i), torch.randn(n, o)) for n, i, o in shapes]
    block, rows = torch.randn(batch, width, width), torch.randn(batch, width, hidden)

    def side() -> int:
        steps = 10
        for _ in range(steps):
            for left, right, gradient in operands:
                torch.mm(left, right.t())
                torch.mm(gradient.t(), left)
                torch.mm(gradient, right)
            for _ in range(2 * layers - 1):
                torch.bmm(block, rows)
        return steps * batch

    return side


def measure(sides: dict[str, Side], repetitions: int) -> dict[str, list[float]]:
    """Milliseconds per graph of each side, one figure per repetition, after one call to warm up."""
    for side in sides.values():
        side()
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repetitions):
        for name, side in sides.items():
            start = time.process_time()
            seen = side()
            times[name].append((time.process_time() - start) / seen * 1e3)
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--graphs", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--layers", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    raw = SPMotif(num_per_class=[-(-options.graphs // 3), 1, 1]).build(None).splits["train"][: options.graphs]
    graphs = PackedGraphs.pack(raw)
    shape = options.hidden, options.layers
    start = time.process_time()
    DiffusedGraphs(graphs, Diffusion("ppr"))
    once = (time.process_time() - start) / len(graphs) * 1e3
    print(f"GIN {options.layers}x{options.hidden}, mean {graphs.x.size(0) / len(graphs):.1f} nodes, one thread")
    print(f"diffusion, once per split: {once:.3f} ms a graph, {once / EPOCHS:.4f} ms a graph and epoch")
    for batch in BATCHES:
        sides = {
            "ours": ours(graphs, batch, *shape),
            "PyGCL": pygcl(raw, batch, *shape, batches=max(1, 128 // batch)),
            "matrix products": products(graphs, batch, *shape),
        }
        times = measure(sides, options.repetitions)
        print(f"{f'batch {batch}':18}{'ms/graph':>10}{'min':>8}{'max':>8}{'/ ours':>8}")
        reference = statistics.median(times["ours"])
        for name, values in times.items():
            middle = statistics.median(values)
            print(f"{name:18}{middle:10.3f}{min(values):8.3f}{max(values):8.3f}{middle / reference:8.2f}")


if __name__ == "__main__":
    main()
