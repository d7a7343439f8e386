"""Checks of backbones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from harness.data import Features, RawGraph
from harness.graphs import Batch, PackedGraphs
from harness.nn.layers import pool
from harness.randomness import seeded
from harness.testing.fake_device import ELSEWHERE
from harness.testing.report import CheckFunction
from harness.testing.rig import (
    SEED,
    Rig,
    Trial,
    another_device,
    depends_on_companions,
    gap,
    global_state,
    hyperparameters_matter,
    noting_draws,
)
from harness.testing.toys import FEATURES, WIDTH, one_node, toy, without_edges
from harness.training.bases import Backbone

EDGE_FEATURES = Features("numeric", (3,))
CODES = Features("categorical", (5, 3))


class BackboneRig(Rig[Backbone, Trial]):
    """A backbone under test; its output is the rows in training mode."""

    small: ClassVar = {"layers": 2, "hidden": WIDTH}

    def built(self, values: Mapping[str, Any] | None = None, features: Features = FEATURES) -> Backbone:
        """Return a built network in training mode."""
        with seeded(SEED, "backbone"):
            network = self.make(values)
            network.build(features, EDGE_FEATURES)
        return network

    def trial(self, values: Mapping[str, Any], seed: int) -> Trial:
        """Compute the toy graphs' rows."""
        draws: list[str] = []
        with noting_draws("build()", draws, torch_may_draw=True):
            network = self.built(values)
        with seeded(seed, "augmentation"), torch.no_grad(), noting_draws("forward()", draws, torch_may_draw=True):
            rows = network(batch())
        return Trial({"rows": rows}, draws=draws)

    def settled(self) -> Backbone:
        """Return a network in evaluation mode whose normalisation has seen the toy graphs."""
        self.outcome()
        network = self.built()
        with seeded(SEED, "augmentation"), torch.no_grad():
            for _ in range(5):
                network(batch())
        return network.eval()

    def on_device(self, values: Mapping[str, Any]) -> Mapping[str, Tensor]:
        """Compute rows and gradients on the other device."""
        network = self.built(values).to(ELSEWHERE)
        network(batch().to(ELSEWHERE)).sum().backward()
        return {}


def graphs() -> list[RawGraph]:
    """Return the toy graphs with edge features."""
    rng = np.random.default_rng(5)
    return [
        replace(graph, edge_attr=rng.normal(size=(graph.edge_index.shape[1], 3)).astype(np.float32))
        for graph in toy().raw
    ]


def batch(chosen: list[RawGraph] | None = None) -> Batch:
    """Return all graphs in one batch."""
    packed = PackedGraphs.pack(graphs() if chosen is None else chosen)
    return packed.batch(torch.arange(len(packed)))


def node_rows(rig: BackboneRig) -> Iterator[str]:
    """One finite row of width ``out_dim`` per node, for numeric and categorical features, and for given ``x``."""
    rig.outcome()
    data = batch()
    codes = torch.stack([torch.arange(data.num_nodes) % size for size in CODES.sizes], dim=1)
    cases: tuple[tuple[str, Features, Batch, Tensor | None], ...] = (
        ("numeric features", FEATURES, data, None),
        ("categorical features", CODES, replace(data, x=codes), None),
        ("features given as x", FEATURES, replace(data, x=torch.full_like(data.x, torch.nan)), data.x),
    )
    for what, features, given, x in cases:
        network = rig.built(features=features)
        with seeded(SEED, "augmentation"):
            rows = network(given, x=x)
        if rows.shape != (data.num_nodes, network.out_dim):
            yield f"{what}: rows of shape {tuple(rows.shape)}, expected {(data.num_nodes, network.out_dim)}"
        elif not bool(torch.isfinite(rows).all()):
            yield f"{what}: rows are not finite"


def edge_weights(rig: BackboneRig) -> Iterator[str]:
    """An edge weight of one is no weight, one of zero is no edge, and weights get a gradient: masks reach messages."""
    network, data = rig.settled(), batch()
    one, half = torch.ones(data.num_edges), (torch.arange(data.num_edges) % 2).float()
    yield from gap(network(data, edge_weight=one), network(data), "outputs with weight one and without weights")
    for what, weight in (("all", one * 0), ("half of the", half)):
        bare = network(data.keep_edges(weight > 0))
        yield from gap(network(data, edge_weight=weight), bare, f"outputs with weight zero on {what} edges and without")
    weight = torch.full((data.num_edges,), 0.7, requires_grad=True)
    network(data, edge_weight=weight).square().sum().backward()
    share = 0.0 if weight.grad is None else float((weight.grad.nan_to_num() != 0).float().mean())
    if share < 0.5:
        yield f"only {share:.0%} of the edge weights have a finite gradient that is not zero"


def companions(rig: BackboneRig) -> Iterator[str]:
    """A graph's rows do not depend on the other graphs of its batch, in evaluation mode."""
    network = rig.settled()
    packed = PackedGraphs.pack(graphs())
    yield from depends_on_companions(lambda some: pool(network(some), some, "mean"), packed, "mean rows")


def node_order(rig: BackboneRig) -> Iterator[str]:
    """Rows follow their nodes, in whichever order a graph lists these, in evaluation mode."""
    network, data = rig.settled(), batch()
    turned = [replace(g, x=g.x[::-1].copy(), edge_index=len(g.x) - 1 - g.edge_index) for g in graphs()]
    back = torch.cat([torch.arange(start, end).flip(0) for start, end in pairwise(data.ptr.tolist())])
    yield from gap(network(batch(turned))[back], network(data), "rows of nodes in reverse and in their order")


def every_module_learns(rig: BackboneRig) -> Iterator[str]:
    """Each module with parameters gets a gradient."""
    rig.outcome()
    network = rig.built()
    with seeded(SEED, "augmentation"):
        rows = network(batch())
    rows.mul(torch.linspace(0.5, 1.5, rows.numel()).reshape(rows.shape)).square().sum().backward()
    for name, module in network.named_modules():
        own = [parameter for parameter in module.parameters(recurse=False) if parameter.requires_grad]
        if own and not any(p.grad is not None and bool((p.grad != 0).any()) for p in own):
            yield f"no parameter of '{name or 'the backbone'}' gets a gradient"


def odd_graphs(rig: BackboneRig) -> Iterator[str]:
    """Graphs without edges or of one node, and a batch of a single such graph, give finite rows and gradients."""
    rig.outcome()
    for what, change in (("without edges", without_edges), ("of one node", one_node)):
        some = [change(graph) if i % 3 == 0 else graph for i, graph in enumerate(graphs())]
        for which, chosen in (("some graphs", some), ("a single graph", some[:1])):
            network = rig.built()
            with seeded(SEED, "augmentation"):
                rows = network(batch(chosen))
            rows.sum().backward()
            gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
            if not all(bool(torch.isfinite(value).all()) for value in (rows, *gradients)):
                yield f"{which} {what}: rows or gradients are not finite"


CHECKS: tuple[CheckFunction, ...] = (
    node_rows,
    edge_weights,
    companions,
    node_order,
    every_module_learns,
    odd_graphs,
    global_state,
    hyperparameters_matter,
    another_device,
)
