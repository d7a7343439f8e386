"""Checks of a learner's predictions: independent of the rest of the batch, blind to labels, a function of the state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import torch
from torch import Tensor

from harness.errors import BenchError
from harness.graphs import Batch
from harness.testing.hyperparameters import each_choice
from harness.testing.learner_rig import EPOCHS, LearnerRig, logits
from harness.testing.report import CheckFunction
from harness.testing.rig import depends_on_companions
from harness.training.bases import Learner


class Poison:
    """Stands where labels must not be read: any use of it raises."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _raise(self, *_: Any, **__: Any) -> NoReturn:
        raise PoisonError(f"batch.{self._name} was read")

    __getattr__ = __getitem__ = __len__ = __iter__ = __bool__ = __eq__ = __ne__ = __lt__ = __gt__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __index__ = __float__ = __array__ = _raise
    __le__ = __ge__ = __int__ = __contains__ = __truediv__ = __rtruediv__ = __invert__ = __neg__ = _raise
    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> NoReturn:
        raise PoisonError("batch.y, batch.env or batch.spurious was read")


class PoisonError(RuntimeError):
    """Something was read that must not be."""


def companions(rig: LearnerRig) -> Iterator[str]:
    """A graph's prediction and embedding do not depend on the other graphs of its batch."""
    learner = _trained(rig)
    graphs = rig.toy().train.without_labels()
    yield from depends_on_companions(learner, graphs, "predictions")
    yield from depends_on_companions(learner.embed, graphs, "embeddings")


def reads_no_labels(rig: LearnerRig) -> Iterator[str]:
    """Predictions and embeddings need no labels, environments or votes, and do not read them."""
    learner = _trained(rig)
    graphs = rig.toy().train
    everything = torch.arange(len(graphs))
    with torch.no_grad():
        for what, function in (("forward", learner), ("embed", learner.embed)):
            bare = function(graphs.without_labels().batch(everything))
            hidden: dict[str, Any] = {name: Poison(name) for name in ("y", "env", "spurious")}
            try:
                blind = function(replace(graphs.batch(everything), **hidden, cache={}))
            except PoisonError as error:
                yield f"{what}: {error} in evaluation"
                continue
            if not torch.equal(bare, blind):
                yield f"{what}: results differ when labels are present"


def evaluation_is_pure(rig: LearnerRig) -> Iterator[str]:
    """Predicting twice gives the same, and leaves weights, buffers and the mode's flag as they were."""
    learner = _trained(rig)
    before = {name: value.clone() for name, value in learner.state_dict().items()}
    first, second = (logits(learner, rig.toy().validation) for _ in range(2))
    if not torch.equal(first, second):
        yield "predicting twice gives different logits: something draws at random in evaluation"
    yield from (
        f"'{name}' changes when predicting"
        for name, value in learner.state_dict().items()
        if not torch.equal(value, before[name])
    )


def state_round_trip(rig: LearnerRig) -> Iterator[str]:
    """A fresh learner with the trained one's state predicts the same."""
    trial = rig.outcome()
    fresh = rig.prepare(rig.toy()).learner
    try:
        fresh.load_state_dict(dict(trial.state))
    except RuntimeError as error:
        yield f"the state does not fit a learner that was just set up: {error}"
        return
    if not torch.equal(logits(fresh, rig.toy().validation), trial.outputs["predictions of validation graphs"]):
        yield "predictions differ after load_state_dict: something that they need is neither a parameter nor a buffer"


def _trained(rig: LearnerRig) -> Learner:
    return rig.outcome().learner.eval()


def statistics_follow_prediction(rig: LearnerRig) -> Iterator[str]:
    """A norm's running statistics after a training step are those that the prediction's pass alone leaves.

    Otherwise evaluation normalises by a mixture that it never sees; ``foreign_statistics`` names the settings in which
    that is meant, ``keeping_statistics`` keeps another pass from moving them.
    """
    rig.outcome()
    for values in each_choice(rig.cls, rig.base):
        given = f"with {', '.join(f'{n}={v}' for n, v in values.items())}: " if values else ""
        try:
            prepared = rig.prepare(rig.toy(), values, epochs=1 if values else EPOCHS)
            if _declares_foreign_statistics(prepared.learner):
                continue
            seen = _Statistics(prepared.learner)
            prepared.fit()
        except BenchError:
            continue  # refused, which is allowed, or diverged, which `hyperparameters_matter` reports
        for names, what in (
            (seen.foreign, "follow another pass beside the prediction's"),
            ([] if values else seen.idle, "never move"),
        ):
            if names:
                more = f" and of {len(names) - 1} more" if len(names) > 1 else ""
                yield f"{given}the running statistics of '{names[0]}'{more} {what}"
        if seen.foreign and not values:
            return  # the other settings would show the same


def _declares_foreign_statistics(learner: Learner) -> bool:
    settings = learner.foreign_statistics
    return settings is not None and all(learner.values[name] in allowed for name, allowed in settings.items())


class _Statistics:
    """Compares running statistics, step by step, with those that a prediction of the same batch would leave.

    Until a step's end nothing but the prediction may move them, so a hook's pass between two steps shows as well. A
    step may leave them as they are: a part of the learner may wait.
    """

    def __init__(self, learner: Learner) -> None:
        self._learner, self._step = learner, learner.training_step
        self._norms = {
            name: part
            for name, part in learner.named_modules()
            if all(isinstance(getattr(part, statistic, None), Tensor) for statistic in ("running_mean", "running_var"))
        }
        self._before = self._now()
        self._foreign: dict[str, None] = {}
        self._passed: dict[str, None] = {}
        self._moved: set[str] = set()
        object.__setattr__(learner, "training_step", self._compared)

    @property
    def foreign(self) -> Sequence[str]:
        """Return the modules whose statistics went elsewhere in some step."""
        return list(self._foreign)

    @property
    def idle(self) -> Sequence[str]:
        """Return the modules that the prediction passes and whose statistics no step moved."""
        return [name for name in self._passed if name not in self._moved]

    def _compared(self, batch: Batch, optimizers: list[torch.optim.Optimizer]) -> Mapping[str, Any]:
        expected = self._predicted(batch)
        row = self._step(batch, optimizers)
        after = self._now()
        for name, wanted in expected.items():
            if torch.equal(after[name], self._before[name]):
                continue
            self._moved.add(name)
            if not torch.allclose(after[name], wanted, rtol=1e-4, atol=1e-6):
                self._foreign[name] = None
        self._before = after
        return row

    def _predicted(self, batch: Batch) -> dict[str, Tensor]:
        """Return the statistics after a prediction alone, of the modules that it passes; the learner stays as it is."""
        learner = self._learner
        state = {name: value.clone() for name, value in learner.state_dict().items()}
        drawn = learner.rng.get_state()
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            for name, norm in self._norms.items():
                norm.running_mean.copy_(self._before[name][0])
                norm.running_var.copy_(self._before[name][1])
            learner(batch)
        passed = {name: value for name, value in self._now().items() if not torch.equal(value, self._before[name])}
        learner.load_state_dict(state)
        learner.rng.set_state(drawn)
        self._passed.update(dict.fromkeys(passed))
        return passed

    def _now(self) -> dict[str, Tensor]:
        """Return (2, d) running mean and variance of each module."""
        return {name: torch.stack([norm.running_mean, norm.running_var]) for name, norm in self._norms.items()}


CHECKS: tuple[CheckFunction, ...] = (
    companions,
    reads_no_labels,
    evaluation_is_pure,
    state_round_trip,
    statistics_follow_prediction,
)
