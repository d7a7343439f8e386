"""Small graphs and a small network on which the learners' tests run; nothing here trains for more than a second."""

import itertools
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from harness import Backbone, Features, PackedGraphs, RawGraph, Task
from harness.randomness import generator, seeded
from harness.training.bases import LearnerInfo, ModelSpec

BINARY, MULTICLASS = Task("binary", 2), Task("multiclass", 3)
MULTITASK = Task("multitask", 2, num_tasks=3, metric="rocauc")


class TinyBackbone(Backbone):
    """Two-line message passing with BatchNorm and dropout, so that their hidden state is tested too."""

    name = "tiny"
    dropout: float

    def build(self, node_features, edge_features):
        del edge_features
        widths = [node_features.sizes[0]] + [self.hidden] * self.layers
        self.linear = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.norm = nn.ModuleList(nn.BatchNorm1d(b) for b in widths[1:])

    def forward(self, batch, x=None, edge_weight=None):
        h = batch.x if x is None else x
        for linear, norm in zip(self.linear, self.norm, strict=True):
            message = h[batch.edge_index[0]]
            if edge_weight is not None:
                message = message * edge_weight.unsqueeze(1)
            h = norm(linear(h + torch.zeros_like(h).index_add(0, batch.edge_index[1], message))).tanh()
            h = nn.functional.dropout(h, self.dropout, self.training)
        return h


def graphs(n=12, *, task=MULTICLASS, features=4, envs=2, seed=0, nodes=(3, 7)):
    """n random undirected-ish graphs with labels and environments; no two nodes share features."""
    rng = generator(seed, "test graphs")
    raw = []
    for _ in range(n):
        size = int(torch.randint(*nodes, (1,), generator=rng))
        adjacency = torch.rand(size, size, generator=rng) < 0.5
        adjacency.fill_diagonal_(False)
        adjacency[0, 1:2] = True
        x = torch.randn(size, features, generator=rng)
        raw.append(RawGraph(x.numpy(), adjacency.nonzero().T.numpy(), 0))
    packed = PackedGraphs.pack(raw)
    y = torch.randint(task.num_classes, (n, task.num_tasks), generator=rng)
    y = y.float() if task.kind == "multitask" else y[:, 0]
    return replace(packed, y=y, env=torch.randint(envs, (n,), generator=rng))


def raw_graphs(packed):
    """The graphs of a packing, one by one."""
    nodes, edges = packed.node_ptr.tolist(), packed.edge_ptr.tolist()
    return [
        RawGraph(packed.x[nodes[i] : nodes[i + 1]].numpy(), packed.edge_index[:, edges[i] : edges[i + 1]].numpy(), 0)
        for i in range(len(packed))
    ]


def repeated(graph, times):
    """The disjoint union of copies of a graph."""
    edges = [graph.edge_index + copy * len(graph.x) for copy in range(times)]
    return replace(graph, x=np.concatenate([graph.x] * times), edge_index=np.concatenate(edges, axis=1))


def make(
    cls,
    *,
    task=MULTICLASS,
    seed=0,
    envs=2,
    backbone=TinyBackbone,
    layers=2,
    hidden=6,
    dropout=0.0,
    num_train=12,
    scores=(0.3, 0.4),
    average_over="labels",
    **values,
):
    """A learner, set up; a decorrelator also gets quantifier scores and softmax weights."""
    learner = cls(**values)
    features = Features("numeric", (4,)), Features("none")
    info = LearnerInfo(task, *features, envs, num_train, total_steps=8, epochs=2, average_over=average_over)
    backbone_values = {"layers": layers, "hidden": hidden, "dropout": dropout}
    learner.setup(info, ModelSpec(backbone, backbone_values, readout="sum", head_layers=1), seed=seed)
    if learner.kind == "decorrelator":
        learner.model_scores = torch.tensor(scores)
        learner.model_weights = (-learner.model_scores / 0.1).softmax(0)
    return learner


def votes(n=12, k=2, classes=3, seed=0):
    """(n, k, classes) random class probabilities."""
    return torch.randn(n, k, classes, generator=generator(seed, "votes")).mul(2).softmax(2)


def train(learner, packed, *, epochs=3, spurious=None, batch_size=6):
    """A few updates in the way of the training loop; returns the weights after them."""
    with seeded(learner._seed, "augmentation"):
        optimizers = learner.optimizers()
        learner.train()
        for learner.epoch in range(epochs):
            for batch in packed.batches(batch_size):
                if spurious is not None:
                    batch.spurious = spurious[batch.index]
                learner.training_step(batch, optimizers)
                learner.step += 1
    return {name: value.clone() for name, value in learner.state_dict().items()}


def same(left, right, *, only=None):
    """Whether two states agree bit for bit, on all names or those that start with one of ``only``."""
    names = [name for name in left if only is None or name.startswith(only)]
    return bool(names) and all(torch.equal(left[name], right[name]) for name in names)


def gradients(learner, term):
    """Name -> sum of absolute gradient of a scalar, for all parameters (0 where there is none)."""
    learner.zero_grad(set_to_none=True)
    term.backward()
    return {n: 0.0 if p.grad is None else float(p.grad.abs().sum()) for n, p in learner.named_parameters()}


def reached(found, module):
    """Whether some parameter of a module got a gradient."""
    return any(value > 0 for name, value in found.items() if name.split(".")[0] == module)
