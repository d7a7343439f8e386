"""Check that running statistics, by which evaluation normalises, are those of what it predicts from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from harness.errors import BenchError
from harness.graphs import Batch
from harness.testing.learner_case import LearnerSubject
from harness.testing.report import CheckFunction
from harness.testing.rig import EPOCHS, prepare, train
from harness.testing.settings import each_choice
from harness.training.bases import Learner

_FOREIGN = "follow another pass beside the prediction's"


def statistics_follow_prediction(subject: LearnerSubject) -> Iterator[str]:
    """A norm's running statistics after a training step are those that the prediction's pass alone leaves.

    Cause: another pass in training mode through a network that also predicts, such as of the left-over part of a graph:
    evaluation then normalises by a mixture that it never sees. Do it under `with keeping_statistics(network):`, or name
    the settings in which the mixture is meant in `foreign_statistics`.

    Look at: loss, training_step, on_epoch_start
    """
    subject.watched()
    for values in each_choice(subject.cls, subject.base):
        given = f"with {', '.join(f'{n}={v}' for n, v in values.items())}: " if values else ""
        epochs = 1 if values else EPOCHS
        try:
            prepared = prepare(subject.cls, {**subject.base, **values}, subject.toy(), epochs=epochs)
            if _declared(prepared.learner):
                continue
            seen = _Statistics(prepared.learner)
            train(prepared, epochs=epochs)
        except BenchError:
            continue  # refused, which is allowed, or diverged, which `hyperparameters_matter` tells
        for names, what in ((seen.foreign, _FOREIGN), ([] if values else seen.idle, "never move")):
            if names:
                more = f" and of {len(names) - 1} more" if len(names) > 1 else ""
                yield f"{given}the running statistics of '{names[0]}'{more} {what}"
        if seen.foreign and not values:
            return  # the other settings would tell the same


def _declared(learner: Learner) -> bool:
    """Whether the learner says of its settings that statistics follow other passes too."""
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
        """Modules whose statistics went elsewhere in some step."""
        return list(self._foreign)

    @property
    def idle(self) -> Sequence[str]:
        """Modules that the prediction passes and whose statistics no step moved."""
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
        """The statistics after a prediction alone, of the modules that it passes; the learner stays as it is."""
        learner = self._learner
        state = {name: value.clone() for name, value in learner.state_dict().items()}
        drawn = learner.rng.get_state()
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            for name, norm in self._norms.items():
                norm.running_mean.copy_(self._before[name][0])
                norm.running_var.copy_(self._before[name][1])
            learner(batch)
        found = {name: value for name, value in self._now().items() if not torch.equal(value, self._before[name])}
        learner.load_state_dict(state)
        learner.rng.set_state(drawn)
        self._passed.update(dict.fromkeys(found))
        return found

    def _now(self) -> dict[str, Tensor]:
        """(2, d) running mean and variance of each module."""
        return {name: torch.stack([norm.running_mean, norm.running_var]) for name, norm in self._norms.items()}


CHECKS: tuple[CheckFunction, ...] = (statistics_follow_prediction,)
