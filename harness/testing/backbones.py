"""Checks of backbones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness.data import Features, RawGraph
from harness.graphs import Batch, PackedGraphs
from harness.nn.layers import pool
from harness.randomness import seeded
from harness.testing.batch_independence import SLACK, depends_on_companions
from harness.testing.report import CheckFunction
from harness.testing.rig import SEED
from harness.testing.rng import python_states
from harness.testing.settings import EVERYWHERE, effects_as_declared
from harness.testing.toys import FEATURES, WIDTH, one_node, raw_graphs, toy, without_edges
from harness.training.bases import Backbone

EDGE_FEATURES = Features("numeric", (3,))
CODES = Features("categorical", (5, 3))


@dataclass
class BackboneSubject:
    """A backbone's class."""

    cls: type[Backbone]

    @property
    def base(self) -> dict[str, Any]:
        """Small settings, and those of ``probes["*"]``."""
        return {"layers": 2, "hidden": WIDTH, **self.cls.probes.get(EVERYWHERE, {})}

    def make(self, values: Mapping[str, Any] | None = None, features: Features = FEATURES) -> Backbone:
        """A built network in training mode."""
        with seeded(SEED, "backbone"):
            network = self.cls(**{**self.base, **(values or {})})
            network.build(features, EDGE_FEATURES)
        return network

    def settled(self) -> Backbone:
        """A network in evaluation mode whose normalisation has seen the toy graphs."""
        network = self.make()
        with seeded(SEED, "augmentation"), torch.no_grad():
            for _ in range(5):
                network(batch())
        return network.eval()


def graphs() -> list[RawGraph]:
    """The toy graphs with edge features."""
    rng = np.random.default_rng(5)
    found = raw_graphs(toy().train)
    return [
        replace(graph, edge_attr=rng.normal(size=(graph.edge_index.shape[1], 3)).astype(np.float32)) for graph in found
    ]


def batch(chosen: list[RawGraph] | None = None) -> Batch:
    """All graphs in one batch."""
    packed = PackedGraphs.pack(graphs() if chosen is None else chosen)
    return packed.batch(torch.arange(len(packed)))


def node_rows(subject: BackboneSubject) -> Iterator[str]:
    """One finite row of width ``out_dim`` per node, for numeric, categorical and no features, and for given ``x``.

    Cause: `batch.x` is read although `x` is given, categorical features are not embedded (`make_front`), or another
    width than `out_dim`.

    Look at: forward, build
    """
    data = batch()
    codes = torch.stack([torch.arange(data.num_nodes) % size for size in CODES.sizes], dim=1)
    cases: tuple[tuple[str, Features, Batch, Tensor | None], ...] = (
        ("numeric features", FEATURES, data, None),
        ("categorical features", CODES, replace(data, x=codes), None),
        ("features given as x", FEATURES, replace(data, x=torch.full_like(data.x, torch.nan)), data.x),
    )
    for what, features, given, x in cases:
        network = subject.make(features=features)
        with seeded(SEED, "augmentation"):
            rows = network(given, x=x)
        if rows.shape != (data.num_nodes, network.out_dim):
            yield f"{what}: rows of shape {tuple(rows.shape)}, expected {(data.num_nodes, network.out_dim)}"
        elif not bool(torch.isfinite(rows).all()):
            yield f"{what}: rows are not finite"


def weight_one_is_none(subject: BackboneSubject) -> Iterator[str]:
    """An edge weight of one everywhere is the same as none.

    Cause: messages are normalised in another way where there are edge weights.

    Look at: forward
    """
    network, data = subject.settled(), batch()
    yield from _gap(network(data), network(data, edge_weight=torch.ones(data.num_edges)), "weight one and no weight")


def weight_zero_is_no_edge(subject: BackboneSubject) -> Iterator[str]:
    """Edges of weight zero are as good as absent: all of them, and some of them.

    Cause: a layer that ignores `edge_weight`, a bias inside the message, or a degree that counts edges of weight
    zero.

    Look at: forward
    """
    network, data = subject.settled(), batch()
    for what, keep in (("all", torch.zeros(data.num_edges)), ("half", (torch.arange(data.num_edges) % 2).float())):
        apart = network(data.keep_edges(keep > 0))
        yield from _gap(network(data, edge_weight=keep), apart, f"weight zero on {what} edges and without these edges")


def _gap(one: Tensor, two: Tensor, what: str) -> Iterator[str]:
    gap = float(((one - two).abs().max() / one.abs().max().clamp(min=1.0)).detach())
    if not gap <= SLACK:
        yield f"outputs with {what} differ by {gap:.2g}, relative"


def edge_weight_gradient(subject: BackboneSubject) -> Iterator[str]:
    """The gradient with respect to the edge weights is finite, and not zero: a mask reaches the messages.

    Cause: `edge_weight` is not handed to the layers, or is detached or compared.

    Look at: forward
    """
    network, data = subject.settled(), batch()
    weight = torch.full((data.num_edges,), 0.7, requires_grad=True)
    network(data, edge_weight=weight).square().sum().backward()
    if weight.grad is None or not bool((weight.grad != 0).any()):
        yield "no edge weight has a gradient: masks have no effect"
    elif not bool(torch.isfinite(weight.grad).all()):
        yield "the gradient of the edge weights is not finite"
    elif (share := float((weight.grad != 0).float().mean())) < 0.5:
        yield f"only {share:.0%} of the edge weights have a gradient"


def companions(subject: BackboneSubject) -> Iterator[str]:
    """A graph's rows do not depend on the other graphs of its batch, in evaluation mode.

    Cause: statistics over the whole batch in `forward`, also in evaluation.

    Look at: forward, build
    """
    network = subject.settled()
    packed = PackedGraphs.pack(graphs())
    yield from depends_on_companions(lambda some: pool(network(some), some, "mean"), packed, "mean rows")


def order_of_nodes(subject: BackboneSubject) -> Iterator[str]:
    """Numbering the nodes otherwise numbers the rows otherwise, and changes nothing else.

    Cause: something that depends on a node's number: positions, sorting, recurrent layers.

    Look at: forward
    """
    network, rng = subject.settled(), np.random.default_rng(3)
    chosen = graphs()
    orders = [rng.permutation(len(graph.x)) for graph in chosen]
    renamed = [
        replace(graph, x=graph.x[order], edge_index=np.argsort(order)[graph.edge_index])
        for graph, order in zip(chosen, orders, strict=True)
    ]
    starts = np.cumsum([0, *(len(order) for order in orders)])
    place = torch.from_numpy(np.concatenate([order + start for order, start in zip(orders, starts, strict=False)]))
    yield from _gap(network(batch(chosen))[place], network(batch(renamed)), "nodes in another order")


def every_module_learns(subject: BackboneSubject) -> Iterator[str]:
    """Each module with parameters gets a gradient.

    Cause: a module made in `build` that `forward` does not use.

    Look at: build, forward
    """
    network, data = subject.make(), batch()
    with seeded(SEED, "augmentation"):
        rows = network(data)
    rows.mul(torch.linspace(0.5, 1.5, rows.numel()).reshape(rows.shape)).square().sum().backward()
    for name, module in network.named_modules():
        own = [parameter for parameter in module.parameters(recurse=False) if parameter.requires_grad]
        if own and not any(p.grad is not None and bool((p.grad != 0).any()) for p in own):
            yield f"no parameter of '{name or 'the backbone'}' gets a gradient"


def odd_graphs(subject: BackboneSubject) -> Iterator[str]:
    """Graphs without edges or of one node, and a batch of a single such graph, give finite rows and gradients.

    Cause: a mean over no neighbours, or a normalisation over one row.

    Look at: forward
    """
    changes: tuple[tuple[str, Callable[[RawGraph], RawGraph]], ...] = (
        ("without edges", lambda graph: _with_edge_attr(without_edges(graph))),
        ("of one node", lambda graph: _with_edge_attr(one_node(graph))),
    )
    for what, change in changes:
        some = [change(graph) if i % 3 == 0 else graph for i, graph in enumerate(graphs())]
        for which, chosen in (("some graphs", some), ("a single graph", some[:1])):
            network, data = subject.make(), batch(chosen)
            with seeded(SEED, "augmentation"):
                rows = network(data)
            rows.sum().backward()
            gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
            if not all(bool(torch.isfinite(value).all()) for value in (rows, *gradients)):
                yield f"{which} {what}: rows or gradients are not finite"


def _with_edge_attr(graph: RawGraph) -> RawGraph:
    return replace(graph, edge_attr=np.zeros((0, 3), dtype=np.float32))


def global_state(subject: BackboneSubject) -> Iterator[str]:
    """Nothing seeds global generators, or draws from NumPy's or Python's.

    Cause: a call that seeds, or a draw from NumPy's or Python's generator.

    Look at: build, forward
    """
    with seeded(SEED, "backbone"):
        before = torch.initial_seed(), python_states()
        network = subject.cls(**subject.base)
        network.build(FEATURES, EDGE_FEATURES)
        network(batch())
        if torch.initial_seed() != before[0]:
            yield "torch's global generator is seeded"
        if python_states() != before[1]:
            yield "NumPy's or Python's global generator is seeded or drawn from"


def hyperparameters_matter(subject: BackboneSubject) -> Iterator[str]:
    """Changing a hyperparameter, where it is declared active, changes the rows in training mode.

    Cause: nothing reads `self.NAME`: where an inherited one has no meaning here, name it in `unused`.

    Look at: build, forward
    """

    def rows(values: Mapping[str, Any]) -> Tensor:
        network = subject.make(values)
        with seeded(SEED, "augmentation"), torch.no_grad():
            found: Tensor = network(batch())
        return found

    def differ(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
        return not torch.equal(rows(one), rows(two))

    yield from effects_as_declared(subject.cls, subject.base, differ)


CHECKS: tuple[CheckFunction, ...] = (
    node_rows,
    weight_one_is_none,
    weight_zero_is_no_edge,
    edge_weight_gradient,
    companions,
    order_of_nodes,
    every_module_learns,
    odd_graphs,
    global_state,
    hyperparameters_matter,
)
