"""The one source of toy data, and the networks of learners under test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from harness.data import Features, RawGraph, Task, TaskKind
from harness.graphs import Batch, PackedGraphs
from harness.nn.conv import GINConv
from harness.nn.front import make_front
from harness.randomness import derive
from harness.training.bases import Backbone, Baseline

WIDTH = 8
"""Width of the kit's networks; differs from every number of classes and tasks."""
FEATURES = Features("numeric", (4,))
TRAIN, VALIDATION = 24, 6
TASKS = {
    "multiclass": Task("multiclass", 3),
    "binary": Task("binary", 2),
    "multitask": Task("multitask", 2, num_tasks=3, metric="rocauc"),
}


@dataclass(frozen=True)
class Toy:
    """Training graphs with labels and environments, and validation graphs with labels of their own.

    Attributes:
        task: the prediction task.
        train: graphs with ``y`` and ``env``.
        validation: graphs without labels.
        validation_y: their labels.
        environments: number of environments; some may have no graph.
        raw: the training graphs one by one.
    """

    task: Task
    train: PackedGraphs
    validation: PackedGraphs
    validation_y: Tensor
    environments: int = 2
    raw: tuple[RawGraph, ...] = field(default=(), repr=False)

    def changed(self, change: Callable[[RawGraph], RawGraph], every: int = 3) -> Toy:
        """Return the data with each third, or so, of the training graphs changed, and labels as they were."""
        graphs = [change(graph) if i % every == 0 else graph for i, graph in enumerate(self.raw)]
        graphs = graphs if self.train.parts is None else [with_halves(graph) for graph in graphs]
        return replace(self, train=replace(PackedGraphs.pack(graphs), y=self.train.y, env=self.train.env))


def toy_graphs(kind: TaskKind = "multiclass") -> list[RawGraph]:
    """Return connected graphs of 4 to 8 nodes whose features follow label and environment; training's come first.

    Of several tasks every fifth label, and all of the fourth graph's, is missing.
    """
    task, count = TASKS[kind], TRAIN + VALIDATION
    rng = np.random.default_rng(derive(0, f"conformance/{kind}"))
    labels, env = rng.integers(task.num_classes, size=count), rng.integers(2, size=count)
    graphs = [_graph(rng, int(y), int(e)) for y, e in zip(labels, env, strict=True)]
    if kind != "multitask":
        return graphs
    y = np.stack([labels, *rng.integers(2, size=(task.num_tasks - 1, count))], axis=1).astype(np.float32)
    y.reshape(-1)[4::5] = np.nan
    y[3] = np.nan
    return [replace(graph, y=row) for graph, row in zip(graphs, y, strict=True)]


def _graph(rng: np.random.Generator, y: int, env: int) -> RawGraph:
    size = int(rng.integers(4, 9))
    edges = {(node, (node + 1) % size) for node in range(size)}
    edges |= {(int(a), int(b)) for a, b in rng.integers(size, size=(2 + y, 2)) if a != b}
    ends = np.array(sorted(edges | {(b, a) for a, b in edges}), dtype=np.int64).T
    x = rng.normal(size=(size, FEATURES.sizes[0]))
    x[:, 0] += 0.7 * y
    x[:, 1] += 1.5 * env
    return RawGraph(x.astype(np.float32), ends, y, env=env)


def toy(kind: TaskKind = "multiclass", *, parts: bool = False) -> Toy:
    """Return the ordinary toy set; with ``parts``, each graph comes with its two halves."""
    raw = [with_halves(graph) for graph in toy_graphs(kind)] if parts else toy_graphs(kind)
    y = torch.from_numpy(np.array([graph.y for graph in raw]))
    env = torch.tensor([graph.env for graph in raw[:TRAIN]])
    train = replace(PackedGraphs.pack(raw[:TRAIN]), y=y[:TRAIN], env=env)
    return Toy(TASKS[kind], train, PackedGraphs.pack(raw[TRAIN:]), y[TRAIN:], raw=tuple(raw[:TRAIN]))


def with_halves(graph: RawGraph) -> RawGraph:
    """Return the graph with the halves of its nodes as parts; a single node is one part."""
    size = len(graph.x)
    cuts = [range((size + 1) // 2), range((size + 1) // 2, size)]
    return replace(graph, parts=[_induced(graph, nodes) for nodes in cuts if len(nodes)])


def _induced(graph: RawGraph, nodes: range) -> RawGraph:
    inside = np.isin(graph.edge_index, nodes).all(0)
    return RawGraph(graph.x[nodes.start : nodes.stop], graph.edge_index[:, inside] - nodes.start, graph.y)


def without_edges(graph: RawGraph) -> RawGraph:
    """Return the nodes alone."""
    attributes = None if graph.edge_attr is None else graph.edge_attr[:0]
    return RawGraph(graph.x, np.zeros((2, 0), dtype=np.int64), graph.y, attributes, graph.env)


def one_node(graph: RawGraph) -> RawGraph:
    """Return the first node alone."""
    return replace(without_edges(graph), x=graph.x[:1])


class KitBackbone(Backbone):
    """A small GIN: graph convolutions with BatchNorm inside, ReLU between, dropout after each."""

    name = "conformance-kit"

    def build(self, node_features: Features, edge_features: Features) -> None:
        """Create the layers."""
        del edge_features
        self.front = make_front(node_features, self.hidden)
        self.convs = nn.ModuleList(GINConv(self.hidden, self.hidden) for _ in range(self.layers))

    def forward(self, batch: Batch, x: Tensor | None = None, edge_weight: Tensor | None = None) -> Tensor:
        """Return (N, hidden) node embeddings."""
        h: Tensor = self.front(batch.x if x is None else x)
        for conv in self.convs:
            h = conv(h, batch, edge_weight)
            if self.dropout:
                h = nn.functional.dropout(h, self.dropout, self.training)
        return h


class PlainERM(Baseline):
    """The base class as it is, the reference of ``equals_erm``."""

    name = "conformance-kit-erm"
