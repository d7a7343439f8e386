"""Checks of self-supervised encoders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from harness.data import Features
from harness.graphs import PackedGraphs
from harness.randomness import generator, seeded
from harness.stages.encode import embedded, snapshots
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
    other_seed,
    same_seed,
    works,
)
from harness.testing.toys import FEATURES, WIDTH, one_node, toy, without_edges
from harness.training.bases import Encoder


@dataclass
class EncoderTrial(Trial):
    """A fit: its outputs are the embeddings of the snapshots by epoch.

    Attributes:
        module: the last snapshot's.
    """

    module: nn.Module = field(default_factory=nn.Module)


class EncoderRig(Rig[Encoder, EncoderTrial]):
    """An encoder under test."""

    small: ClassVar = {"layers": 2, "hidden": WIDTH, "snapshots": [1, 3], "batch_size": 8, "lr": 0.01}

    def trial(self, values: Mapping[str, Any], seed: int) -> EncoderTrial:
        """Fit on the toy graphs without labels."""
        return self.fit(graphs(), values, seed)

    def fit(self, data: PackedGraphs, values: Mapping[str, Any] | None = None, seed: int = SEED) -> EncoderTrial:
        """Fit as the engine does, and embed at each snapshot."""
        encoder = self.make(values)
        encoder.node_features, encoder.edge_features = FEATURES, Features("none")
        encoder.seed, encoder.rng = seed, generator(seed, "method")
        data = replace(data, max_batch_nodes=encoder.max_batch_nodes)
        outputs, draws, module = dict[str, Tensor](), list[str](), nn.Module()
        with seeded(seed, "encoder"), noting_draws("fit()", draws, torch_may_draw=True):
            for epoch, module in snapshots(encoder, data):
                mode = module.training
                outputs[str(epoch)] = embedded(encoder, module, data).clone()
                module.train(mode)
        return EncoderTrial(outputs, draws=draws, module=module)

    def on_device(self, values: Mapping[str, Any]) -> Mapping[str, Tensor]:
        """Fit on the other device."""
        outputs = self.fit(graphs().to(ELSEWHERE), values).outputs
        return {epoch: rows.cpu() for epoch, rows in outputs.items()}


def graphs() -> PackedGraphs:
    """Return the toy graphs without labels."""
    return toy().train.without_labels()


def tells_graphs_apart(rig: EncoderRig) -> Iterator[str]:
    """Embeddings differ from graph to graph."""
    for epoch, rows in rig.outcome().outputs.items():
        if bool((rows == rows[:1]).all()):
            yield f"epoch {epoch}: all graphs have the same embedding"


def companions(rig: EncoderRig) -> Iterator[str]:
    """A graph's embedding does not depend on the other graphs of its batch, and ``embed`` gives the same."""
    trial = rig.outcome()
    module = trial.module.eval()
    yield from depends_on_companions(module, graphs(), "embeddings")
    with torch.no_grad():
        direct = torch.cat([module(batch) for batch in graphs().batches(256)])
    yield from gap([*trial.outputs.values()][-1], direct, "results of embed() and of the module")


def odd_graphs(rig: EncoderRig) -> Iterator[str]:
    """Graphs without edges and graphs of one node have finite embeddings."""
    rig.outcome()
    for what, change in (("graphs without edges", without_edges), ("graphs of one node", one_node)):
        trial = rig.fit(toy().changed(change).train.without_labels())
        if not all(bool(torch.isfinite(rows).all()) for rows in trial.outputs.values()):
            yield f"{what}: embeddings are not finite"


CHECKS: tuple[CheckFunction, ...] = (
    works,
    tells_graphs_apart,
    companions,
    same_seed,
    other_seed,
    global_state,
    odd_graphs,
    hyperparameters_matter,
    another_device,
)
