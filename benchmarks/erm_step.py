"""Time of one ERM training step on SPMotif: ours, PyG's usual loop, and the step's matrix products alone.

    python benchmarks/erm_step.py [--repetitions 40] [--graphs 2048] [--hidden 32]

One thread; GIN in EQuAD's flavour with three layers, sum readout, batches of 32 from a fresh shuffle each epoch. All
sides run the same model on the same graphs and take turns, 16 steps at a time, so that a busy machine slows all of them
alike; the figures are medians over the repetitions. Time is CPU time, which on one thread is the wall time of an
otherwise idle machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import Features, PackedGraphs, RawGraph, Task
from harness.training.bases import Learner, LearnerInfo, ModelSpec
from plugins.backbones.gin import GIN
from plugins.baselines.erm import ERM
from plugins.datasets.spmotif import SPMotif

BATCH = 32
LAYERS = 3
TURN = 16


class PyGGIN(nn.Module):
    """The same network from PyG's parts: ReLU on the message by handing GINConv a pair of (source, target) rows."""

    def __init__(self, in_dim: int, hidden: int, classes: int) -> None:
        super().__init__()
        widths = [in_dim] + [hidden] * (LAYERS - 1)
        self.convs = nn.ModuleList(GINConv(_mlp(width, hidden), train_eps=True) for width in widths)
        self.head = nn.Sequential(
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes)
        )

    def forward(self, data: Data) -> Tensor:
        """(B, C) logits."""
        x = data.x
        for conv in self.convs:
            x = conv((x.relu(), x), data.edge_index)
        logits: Tensor = self.head(global_add_pool(x, data.batch, size=data.num_graphs))
        return logits


def _mlp(in_dim: int, hidden: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(in_dim, 2 * hidden), nn.BatchNorm1d(2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, hidden)
    )


def make_learner(graphs: PackedGraphs, hidden: int) -> Learner:
    """Our ERM, set up as the harness does."""
    learner = ERM()
    info = LearnerInfo(Task("multiclass", 3), Features("numeric", (graphs.x.size(1),)), Features("none"))
    learner.setup(info, ModelSpec(GIN, {"layers": LAYERS, "hidden": hidden}), seed=0)
    learner.train()
    return learner


def ours(graphs: PackedGraphs, hidden: int, *, ahead: bool, size: int = BATCH) -> Iterator[None]:
    """The harness's steps without end; ``ahead`` gathers many batches at a time, as its training loop does."""
    learner = make_learner(graphs, hidden)
    optimizers = learner.optimizers()
    generator = torch.Generator().manual_seed(0)
    while True:
        order = torch.randperm(len(graphs), generator=generator)
        for batch in graphs.batches(size, order) if ahead else map(graphs.batch, order.split(size)):
            learner.training_step(batch, optimizers)
            yield


def pyg(graphs: Sequence[RawGraph], hidden: int, *, fused: bool, size: int = BATCH) -> Iterator[None]:
    """The steps of the usual PyG loop without end."""
    data = [
        Data(x=torch.from_numpy(g.x), edge_index=torch.from_numpy(g.edge_index), y=torch.tensor([g.y])) for g in graphs
    ]
    loader = DataLoader(data, batch_size=size, shuffle=True)
    model = PyGGIN(graphs[0].x.shape[1], hidden, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused or None)
    while True:
        for batch in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch), batch.y).backward()
            optimizer.step()
            yield


def products(graphs: PackedGraphs, hidden: int, *, size: int = BATCH) -> Iterator[None]:
    """The dense products of a step alone, forward and backward, at the mean batch size, without end."""
    nodes = graphs.x.size(0) * size // len(graphs)
    shapes = [(nodes, graphs.x.size(1), 2 * hidden), (nodes, 2 * hidden, hidden)]
    shapes += [(nodes, hidden, 2 * hidden), (nodes, 2 * hidden, hidden)] * (LAYERS - 1)
    shapes += [(size, hidden, hidden)] * 2 + [(size, hidden, 3)]
    operands = [(torch.randn(n, i), torch.randn(o, i), torch.randn(n, o)) for n, i, o in shapes]
    while True:
        for rows, weight, gradient in operands:
            torch.mm(rows, weight.t())
            torch.mm(gradient.t(), rows)
            torch.mm(gradient, weight)  # in the first layer too, for the gradient of eps
        yield


def measure(sides: dict[str, Iterator[None]], repetitions: int, turn: int = TURN) -> dict[str, list[float]]:
    """Milliseconds per step of each side, one figure per turn of so many steps, after one to warm up."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repetitions + 1):
        for name, steps in sides.items():
            start = time.process_time()
            for _ in range(turn):
                next(steps)
            times[name].append((time.process_time() - start) / turn * 1e3)
    return {name: values[1:] for name, values in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--graphs", type=int, default=2048)
    parser.add_argument("--hidden", type=int, default=32)
    options = parser.parse_args()
    torch.set_num_threads(1)
    raw = SPMotif(num_per_class=[-(-options.graphs // 3), 1, 1]).build(None).splits["train"][: options.graphs]
    graphs = PackedGraphs.pack(raw)
    graphs.y = torch.tensor([graph.y for graph in raw])
    sides = {
        "ours": ours(graphs, options.hidden, ahead=True),
        "ours, batch by batch": ours(graphs, options.hidden, ahead=False),
        "PyG": pyg(raw, options.hidden, fused=False),
        "PyG, fused Adam": pyg(raw, options.hidden, fused=True),
        "matrix products": products(graphs, options.hidden),
    }
    times = measure(sides, options.repetitions)
    nodes, edges = (count * BATCH // len(graphs) for count in (graphs.x.size(0), graphs.edge_index.size(1)))
    print(f"GIN {LAYERS}x{options.hidden}, batch {BATCH} (about {nodes} nodes, {edges} edges), one thread")
    print(f"{'':22}{'ms/step':>9}{'min':>8}{'max':>8}{'/ ours':>8}")
    middle = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        shown = (middle[name], min(values), max(values), middle[name] / middle["ours"])
        print("{:22}{:9.3f}{:8.3f}{:8.3f}{:8.2f}".format(name, *shown))
    print(f"PyG / ours: {middle['PyG'] / middle['ours']:.2f} (required 1.8, aim 2.5)")
    print(f"ours / matrix products: {middle['ours'] / middle['matrix products']:.2f}")


if __name__ == "__main__":
    main()
