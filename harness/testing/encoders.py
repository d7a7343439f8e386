"""Checks of self-supervised encoders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from harness.data import Features
from harness.graphs import PackedGraphs
from harness.randomness import generator, seeded
from harness.registry.returned import ReturnedError
from harness.stages.encode import snapshots
from harness.testing.batch_independence import SLACK, depends_on_companions
from harness.testing.report import CheckFunction
from harness.testing.rig import OTHER_SEED, SEED
from harness.testing.rng import python_states
from harness.testing.settings import EVERYWHERE, effects_as_declared
from harness.testing.toys import FEATURES, WIDTH, one_node, raw_graphs, toy, with_graphs, without_edges
from harness.training.bases import Encoder

SMALL = {"layers": 2, "hidden": WIDTH, "snapshots": [1, 3], "batch_size": 8, "lr": 0.01}


@dataclass(frozen=True)
class Fitted:
    """What a fit left: per snapshot its epoch, embeddings and weights; the last module; seeding seen."""

    epochs: list[int]
    embeddings: list[Tensor]
    weights: list[dict[str, Tensor]]
    module: nn.Module
    seeding: list[str]


@dataclass
class EncoderSubject:
    """An encoder's class, and what was fitted so far."""

    cls: type[Encoder]
    _fitted: dict[str, Fitted] = field(default_factory=dict, repr=False)

    @property
    def base(self) -> dict[str, Any]:
        """Small settings, and those of ``probes["*"]``."""
        return {**SMALL, **self.cls.probes.get(EVERYWHERE, {})}

    def fitted(self, values: Mapping[str, Any] | None = None, seed: int = SEED) -> Fitted:
        """A fit on the toy graphs without labels."""
        settings = {**self.base, **(values or {})}
        key = json.dumps([settings, seed], sort_keys=True)
        if key not in self._fitted:
            self._fitted[key] = fit(self.cls, settings, graphs(), seed)
        return self._fitted[key]


def graphs() -> PackedGraphs:
    """The toy graphs without labels."""
    return toy().train.without_labels()


def make(cls: type[Encoder], values: Mapping[str, Any], seed: int) -> Encoder:
    """An encoder with what the engine sets on it."""
    encoder = cls(**values)
    encoder.node_features, encoder.edge_features = FEATURES, Features("none")
    encoder.seed, encoder.rng = seed, generator(seed, "method")
    return encoder


def fit(cls: type[Encoder], values: Mapping[str, Any], data: PackedGraphs, seed: int) -> Fitted:
    """Fit as the engine does, and embed at each snapshot."""
    encoder = make(cls, values, seed)
    data = replace(data, max_batch_nodes=encoder.max_batch_nodes)
    epochs, embeddings, weights, seeding = [], [], [], []
    module = nn.Module()
    with seeded(seed, "encoder"):
        before = torch.initial_seed(), python_states()
        for epoch, module in encoder.fit(data):
            mode = module.training
            embeddings.append(encoder.embed(module, data).clone())
            module.train(mode)
            epochs.append(epoch)
            weights.append({name: value.detach().clone() for name, value in module.state_dict().items()})
        if torch.initial_seed() != before[0]:
            seeding.append("fit() seeds torch's global generator")
        if python_states() != before[1]:
            seeding.append("fit() seeds or draws from NumPy's or Python's global generator")
    return Fitted(epochs, embeddings, weights, module, seeding)


def snapshots_in_order(subject: EncoderSubject) -> Iterator[str]:
    """A snapshot after each of the declared epochs, in ascending order, each once; the last one ends training.

    Cause: a loop over other epochs than 1 to `max(self.snapshots)`, a `yield` that does not ask `epoch in
    self.snapshots`, or a list that is returned.

    Look at: fit
    """
    try:
        for _ in snapshots(make(subject.cls, subject.base, SEED), graphs()):
            pass
    except ReturnedError as error:
        yield str(error)
    for asked in (subject.base["snapshots"], [3, 1, 3]):
        found = subject.fitted({"snapshots": asked}).epochs
        if found != sorted(set(asked)):
            yield f"snapshots {asked} gave the epochs {found}, expected {sorted(set(asked))}"


def finite_embeddings(subject: EncoderSubject) -> Iterator[str]:
    """Embeddings are (n, d), finite, and not the same for all graphs.

    Cause: a module that returns nodes instead of graphs, collapsed training, or a logarithm or division at zero.

    Look at: fit
    """
    for epoch, rows in zip(subject.fitted().epochs, subject.fitted().embeddings, strict=True):
        if rows.dim() != 2 or len(rows) != len(graphs()):
            yield f"epoch {epoch}: embeddings of shape {tuple(rows.shape)} for {len(graphs())} graphs"
        elif not bool(torch.isfinite(rows).all()):
            yield f"epoch {epoch}: embeddings are not finite"
        elif bool((rows == rows[:1]).all()):
            yield f"epoch {epoch}: all graphs have the same embedding"


def weights_move(subject: EncoderSubject) -> Iterator[str]:
    """Training changes weights and embeddings from one snapshot to the next.

    Cause: no `optimizer.step()`, an optimizer over other parameters, a detached loss, or a module that is made anew
    for each snapshot.

    Look at: fit
    """
    fitted = subject.fitted()
    first, last = fitted.weights[0], fitted.weights[-1]
    if all(torch.equal(first[name], last[name]) for name, _ in fitted.module.named_parameters()):
        yield f"weights are the same after epochs {fitted.epochs[0]} and {fitted.epochs[-1]}"
    if torch.equal(fitted.embeddings[0], fitted.embeddings[-1]):
        yield f"embeddings are the same after epochs {fitted.epochs[0]} and {fitted.epochs[-1]}"


def snapshots_do_not_disturb(subject: EncoderSubject) -> Iterator[str]:
    """Taking snapshots on the way does not change how training ends.

    Cause: `.eval()` before the `yield` without `.train()` after it, or draws from `self.rng` for a snapshot alone.

    Look at: fit
    """
    every = subject.fitted({"snapshots": [1, 2, 3]})
    last = subject.fitted({"snapshots": [3]})
    if not torch.equal(every.embeddings[-1], last.embeddings[-1]):
        yield "embeddings after epoch 3 depend on whether there were snapshots before"


def sees_no_label(subject: EncoderSubject) -> Iterator[str]:
    """Labels and environments make no difference, present or absent.

    Cause: `fit` reads `y` or `env` of the graphs.

    Look at: fit
    """
    labelled = fit(subject.cls, subject.base, toy().train, SEED)
    if not torch.equal(labelled.embeddings[-1], subject.fitted().embeddings[-1]):
        yield "embeddings differ when the graphs carry labels and environments"


def companions(subject: EncoderSubject) -> Iterator[str]:
    """A graph's embedding does not depend on the other graphs of its batch, and ``embed`` gives the same.

    Cause: statistics over the whole batch in the module's `forward`, or an `embed` that sorts or batches in another
    way.

    Look at: embed, fit
    """
    fitted = subject.fitted()
    module = fitted.module.eval()
    yield from depends_on_companions(module, graphs(), "embeddings")
    with torch.no_grad():
        direct = torch.cat([module(batch) for batch in graphs().batches(256)])
    gap = float((direct - fitted.embeddings[-1]).abs().max() / direct.abs().max().clamp(min=1.0))
    if not gap <= SLACK:
        yield f"embed() and the module give different embeddings (by {gap:.2g}, relative), or another order"


def same_seed(subject: EncoderSubject) -> Iterator[str]:
    """Two fits with one seed are bit for bit alike.

    Cause: a draw that comes neither from `self.rng` nor from torch's layers: `random`, `np.random.default_rng()`,
    the order of a set.

    Look at: fit
    """
    again = fit(subject.cls, subject.base, graphs(), SEED)
    if not torch.equal(again.embeddings[-1], subject.fitted().embeddings[-1]):
        yield "a second fit with the same seed gives other embeddings"


def other_seed(subject: EncoderSubject) -> Iterator[str]:
    """Another seed gives other embeddings.

    Cause: `torch.manual_seed(…)` or a generator with a fixed seed; draw from `self.rng`.

    Look at: fit
    """
    if torch.equal(subject.fitted(seed=OTHER_SEED).embeddings[-1], subject.fitted().embeddings[-1]):
        yield "a fit with another seed is bit for bit the same: something fixes the seed"


def global_state(subject: EncoderSubject) -> Iterator[str]:
    """Nothing seeds global generators, or draws from NumPy's or Python's.

    Cause: `np.random…`, `random…` or a call that seeds; draw from `self.rng`.

    Look at: fit
    """
    yield from subject.fitted().seeding


def odd_graphs(subject: EncoderSubject) -> Iterator[str]:
    """Graphs without edges and graphs of one node have finite embeddings.

    Cause: an augmentation that empties a graph, or a softmax, mean or logarithm over nothing.

    Look at: fit
    """
    for what, change in (("graphs without edges", without_edges), ("graphs of one node", one_node)):
        chosen = [change(graph) if i % 3 == 0 else graph for i, graph in enumerate(raw_graphs(graphs()))]
        found = fit(subject.cls, subject.base, with_graphs(graphs(), chosen), SEED)
        if not all(bool(torch.isfinite(rows).all()) for rows in found.embeddings):
            yield f"{what}: embeddings are not finite"


def hyperparameters_matter(subject: EncoderSubject) -> Iterator[str]:
    """Changing a hyperparameter, where it is declared active, changes the embeddings.

    Cause: nothing reads `self.NAME`; or it is read in one mode only (declare `active`), or its effect needs other
    settings (give them in `probes`).

    Look at: fit
    """

    def differ(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
        left, right = subject.fitted(one), subject.fitted(two)
        return left.epochs != right.epochs or not torch.equal(left.embeddings[-1], right.embeddings[-1])

    yield from effects_as_declared(subject.cls, subject.base, differ)


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
)
