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
from harness.registry.returned import ReturnedError
from harness.stages.encode import snapshots
from harness.testing.fake_device import ELSEWHERE
from harness.testing.report import CheckFunction
from harness.testing.rig import (
    SEED,
    SLACK,
    Rig,
    Trial,
    another_device,
    depends_on_companions,
    global_state,
    hyperparameters_matter,
    noting_draws,
    other_seed,
    relative_gap,
    same_seed,
)
from harness.testing.toys import FEATURES, WIDTH, one_node, toy, without_edges
from harness.training.bases import Encoder


@dataclass
class EncoderTrial(Trial):
    """A fit: its outputs are the epochs and the last embeddings.

    Attributes:
        embeddings, weights: of each snapshot.
        module: the last snapshot's.
    """

    embeddings: list[Tensor] = field(default_factory=list)
    weights: list[dict[str, Tensor]] = field(default_factory=list)
    module: nn.Module = field(default_factory=nn.Module)

    @property
    def epochs(self) -> list[int]:
        """Return the epochs of the snapshots."""
        return list(self.outputs["epochs"])


class EncoderRig(Rig[Encoder, EncoderTrial]):
    """An encoder under test."""

    small: ClassVar = {"layers": 2, "hidden": WIDTH, "snapshots": [1, 3], "batch_size": 8, "lr": 0.01}

    def encoder(self, values: Mapping[str, Any], seed: int = SEED) -> Encoder:
        """Return an encoder with the attributes that the engine sets."""
        encoder = self.make(values)
        encoder.node_features, encoder.edge_features = FEATURES, Features("none")
        encoder.seed, encoder.rng = seed, generator(seed, "method")
        return encoder

    def trial(self, values: Mapping[str, Any], seed: int) -> EncoderTrial:
        """Fit on the toy graphs without labels."""
        return self.fit(graphs(), values, seed)

    def fit(self, data: PackedGraphs, values: Mapping[str, Any] | None = None, seed: int = SEED) -> EncoderTrial:
        """Fit as the engine does, and embed at each snapshot."""
        encoder = self.encoder(values or {}, seed)
        data = replace(data, max_batch_nodes=encoder.max_batch_nodes)
        trial, epochs = EncoderTrial({}), []
        with seeded(seed, "encoder"), noting_draws("fit()", trial.draws, torch_may_draw=True):
            for epoch, module in encoder.fit(data):
                mode = module.training
                trial.embeddings.append(encoder.embed(module, data).clone())
                module.train(mode)
                epochs.append(epoch)
                trial.weights.append({name: value.detach().clone() for name, value in module.state_dict().items()})
                trial.module = module
        trial.outputs = {"epochs": epochs, "embeddings": trial.embeddings[-1] if epochs else None}
        return trial

    def on_device(self, values: Mapping[str, Any]) -> Mapping[str, Tensor]:
        """Fit on the other device."""
        return {"embeddings": self.fit(graphs().to(ELSEWHERE), values).embeddings[-1].cpu()}


def graphs() -> PackedGraphs:
    """Return the toy graphs without labels."""
    return toy().train.without_labels()


def snapshots_in_order(rig: EncoderRig) -> Iterator[str]:
    """A snapshot after each of the declared epochs, in ascending order, each once; the last one ends training."""
    try:
        for _ in snapshots(rig.encoder({}), graphs()):
            pass
    except ReturnedError as error:
        yield str(error)
    for asked in (rig.base["snapshots"], [3, 1, 3]):
        epochs = rig.outcome({"snapshots": asked}).epochs
        if epochs != sorted(set(asked)):
            yield f"snapshots {asked} gave the epochs {epochs}, expected {sorted(set(asked))}"


def finite_embeddings(rig: EncoderRig) -> Iterator[str]:
    """Embeddings are (n, d), finite, and not the same for all graphs."""
    trial = rig.outcome()
    for epoch, rows in zip(trial.epochs, trial.embeddings, strict=True):
        if rows.dim() != 2 or len(rows) != len(graphs()):
            yield f"epoch {epoch}: embeddings of shape {tuple(rows.shape)} for {len(graphs())} graphs"
        elif not bool(torch.isfinite(rows).all()):
            yield f"epoch {epoch}: embeddings are not finite"
        elif bool((rows == rows[:1]).all()):
            yield f"epoch {epoch}: all graphs have the same embedding"


def weights_move(rig: EncoderRig) -> Iterator[str]:
    """Training changes weights and embeddings from one snapshot to the next."""
    trial = rig.outcome()
    between = f"after epochs {trial.epochs[0]} and {trial.epochs[-1]}"
    first, last = trial.weights[0], trial.weights[-1]
    if all(torch.equal(first[name], last[name]) for name, _ in trial.module.named_parameters()):
        yield f"weights are the same {between}"
    if torch.equal(trial.embeddings[0], trial.embeddings[-1]):
        yield f"embeddings are the same {between}"


def snapshots_do_not_disturb(rig: EncoderRig) -> Iterator[str]:
    """Taking snapshots on the way does not change how training ends."""
    every, last = rig.outcome({"snapshots": [1, 2, 3]}), rig.outcome({"snapshots": [3]})
    if not torch.equal(every.embeddings[-1], last.embeddings[-1]):
        yield "embeddings after epoch 3 depend on whether there were snapshots before"


def sees_no_label(rig: EncoderRig) -> Iterator[str]:
    """Labels and environments make no difference, present or absent."""
    expected = rig.outcome().embeddings[-1]
    if not torch.equal(rig.fit(toy().train).embeddings[-1], expected):
        yield "embeddings differ when the graphs carry labels and environments"


def companions(rig: EncoderRig) -> Iterator[str]:
    """A graph's embedding does not depend on the other graphs of its batch, and ``embed`` gives the same."""
    trial = rig.outcome()
    module = trial.module.eval()
    yield from depends_on_companions(module, graphs(), "embeddings")
    with torch.no_grad():
        direct = torch.cat([module(batch) for batch in graphs().batches(256)])
    if not (gap := relative_gap(trial.embeddings[-1], direct)) <= SLACK:
        yield f"embed() and the module give different embeddings (by {gap:.2g}, relative), or another order"


def odd_graphs(rig: EncoderRig) -> Iterator[str]:
    """Graphs without edges and graphs of one node have finite embeddings."""
    rig.outcome()
    for what, change in (("graphs without edges", without_edges), ("graphs of one node", one_node)):
        trial = rig.fit(toy().changed(change).train.without_labels())
        if not all(bool(torch.isfinite(rows).all()) for rows in trial.embeddings):
            yield f"{what}: embeddings are not finite"


CHECKS: tuple[CheckFunction, ...] = (
    snapshots_in_order,
    finite_embeddings,
    weights_move,
    snapshots_do_not_disturb,
    sees_no_label,
    companions,
    same_seed,
    other_seed,
    global_state,
    odd_graphs,
    hyperparameters_matter,
    another_device,
)
