"""Small fixed data on which the conformance kit tries components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from harness.data import Features, RawGraph, Task, TaskKind
from harness.graphs import Batch, PackedGraphs
from harness.nn.conv import GINConv
from harness.nn.front import make_front
from harness.randomness import derive
from harness.training.bases import Backbone

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
        task: what is predicted.
        train: graphs with ``y`` and ``env``.
        validation: graphs without labels.
        validation_y: their labels.
        environments: number of environments; some may have no graph.
    """

    task: Task
    train: PackedGraphs
    validation: PackedGraphs
    validation_y: Tensor
    environments: int = 2


class KitBackbone(Backbone):
    """A small GIN: graph convolutions with BatchNorm inside, ReLU between, dropout after each."""

    name = "conformance-kit"

    def build(self, node_features: Features, edge_features: Features) -> None:
        """Create the layers."""
        del edge_features
        self.front = make_front(node_features, self.hidden)
        self.convs = torch.nn.ModuleList(GINConv(self.hidden, self.hidden) for _ in range(self.layers))

    def forward(self, batch: Batch, x: Tensor | None = None, edge_weight: Tensor | None = None) -> Tensor:
        """(N, hidden) node embeddings."""
        h: Tensor = self.front(batch.x if x is None else x)
        for conv in self.convs:
            h = conv(h, batch, edge_weight)
            if self.dropout:
                h = torch.nn.functional.dropout(h, self.dropout, self.training)
        return h


def toy(kind: TaskKind = "multiclass", *, parts: bool = False) -> Toy:
    """The ordinary toy set: connected graphs of 4 to 8 nodes whose features go with label and environment.

    With ``parts``, each graph comes with its two halves.
    """
    task = TASKS[kind]
    rng = np.random.default_rng(derive(0, f"conformance/{kind}"))
    labels, env = rng.integers(task.num_classes, size=TRAIN + VALIDATION), rng.integers(2, size=TRAIN + VALIDATION)
    graphs = [_graph(rng, int(y), int(e)) for y, e in zip(labels, env, strict=True)]
    graphs = [with_halves(graph) for graph in graphs] if parts else graphs
    y = _labels(rng, task, labels)
    train = replace(PackedGraphs.pack(graphs[:TRAIN]), y=y[:TRAIN], env=torch.from_numpy(env[:TRAIN]))
    return Toy(task, train, PackedGraphs.pack(graphs[TRAIN:]), y[TRAIN:])


def _graph(rng: np.random.Generator, y: int, env: int) -> RawGraph:
    size = int(rng.integers(4, 9))
    edges = {(node, (node + 1) % size) for node in range(size)}
    edges |= {(int(a), int(b)) for a, b in rng.integers(size, size=(2 + y, 2)) if a != b}
    ends = np.array(sorted(edges | {(b, a) for a, b in edges}), dtype=np.int64).T
    x = rng.normal(size=(size, FEATURES.sizes[0]))
    x[:, 0] += 0.7 * y
    x[:, 1] += 1.5 * env
    return RawGraph(x.astype(np.float32), ends, y)


def _labels(rng: np.random.Generator, task: Task, labels: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Tensor:
    """(n,) classes, or (n, T) with every fifth label and all of the fourth graph's missing."""
    if task.kind != "multitask":
        return torch.from_numpy(labels)
    y = np.stack([labels, *rng.integers(2, size=(task.num_tasks - 1, len(labels)))], axis=1).astype(np.float32)
    y.reshape(-1)[4::5] = np.nan
    y[3] = np.nan
    return torch.from_numpy(y)


def raw_graphs(packed: PackedGraphs) -> list[RawGraph]:
    """The graphs of a packing, one by one."""
    nodes, edges = packed.node_ptr.tolist(), packed.edge_ptr.tolist()
    return [
        RawGraph(packed.x[nodes[i] : nodes[i + 1]].numpy(), packed.edge_index[:, edges[i] : edges[i + 1]].numpy(), 0)
        for i in range(len(packed))
    ]


def with_graphs(packed: PackedGraphs, graphs: Sequence[RawGraph]) -> PackedGraphs:
    """The same labels and environments on other graphs, with parts where the others had them."""
    given = graphs if packed.parts is None else [with_halves(graph) for graph in graphs]
    return replace(PackedGraphs.pack(given), y=packed.y, env=packed.env)


def with_halves(graph: RawGraph) -> RawGraph:
    """The graph with its first and its second half of the nodes as parts; of a single node there is one half."""
    size = len(graph.x)
    cuts = [range((size + 1) // 2), range((size + 1) // 2, size)]
    return replace(graph, parts=[_induced(graph, nodes) for nodes in cuts if len(nodes)])


def _induced(graph: RawGraph, nodes: range) -> RawGraph:
    inside = np.isin(graph.edge_index, nodes).all(0)
    return RawGraph(graph.x[nodes.start : nodes.stop], graph.edge_index[:, inside] - nodes.start, graph.y)


def without_edges(graph: RawGraph) -> RawGraph:
    """The nodes alone."""
    return RawGraph(graph.x, np.zeros((2, 0), dtype=np.int64), graph.y)


def one_node(graph: RawGraph) -> RawGraph:
    """The first node alone."""
    return RawGraph(graph.x[:1], np.zeros((2, 0), dtype=np.int64), graph.y)
