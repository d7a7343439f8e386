"""What a profile found, as plain data. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TrainingProfile:
    """One learner's training, measured on some of its steps. Times are seconds of processor time.

    Attributes:
        steps: how many steps were measured; the values of one step are medians over them.
        sections: ``batch`` (gathering the graphs) and the parts of a step -> time of one step.
        fit_start: of what the learner does once before the first epoch.
        epoch_hooks: of what the learner does at the start of an epoch.
        evaluation: of predicting the validation splits, once an epoch.
        steps_per_epoch, epochs: of the whole training.
        parameters: number of trained values.
    """

    steps: int
    sections: dict[str, float]
    fit_start: float
    epoch_hooks: float
    evaluation: float
    steps_per_epoch: int
    epochs: int
    parameters: int

    @property
    def step(self) -> float:
        """One step, its batch included."""
        return sum(self.sections.values())

    @property
    def epoch(self) -> float:
        """One epoch, by its parts."""
        return self.steps_per_epoch * self.step + self.epoch_hooks + self.evaluation

    @property
    def total(self) -> float:
        """The whole training, by its parts."""
        return self.fit_start + self.epochs * self.epoch

    def to_json(self) -> dict[str, Any]:
        """All of it, the sums included."""
        return {**vars(self), "step": self.step, "epoch": self.epoch, "total": self.total}


@dataclass(frozen=True)
class Operation:
    """An operation of torch, or a Python function, with its own time in one step, without what it calls.

    Attributes:
        name: of the operation, or ``file.py:LINE(function)``.
        calls: in one step.
        seconds: of one step.
        share: of all operations or functions.
    """

    name: str
    calls: float
    seconds: float
    share: float


@dataclass(frozen=True)
class StageTime:
    """A stage of a cell: its recorded seconds, or None where it has not run."""

    kind: str
    title: str
    seconds: float | None


@dataclass(frozen=True)
class Profile:
    """A cell's profile.

    Attributes:
        cell, method, dataset, seed, config: which cell.
        stages: those that the cell builds on and its own.
        batch_size: graphs per batch.
        training, plain: the cell's learner, and plain risk minimisation with the same network on the same batches.
        operations: the costliest first; functions likewise, where they were asked for.
        trace: the written Chrome trace, or None.
    """

    cell: str
    method: str
    dataset: str
    seed: int
    config: str
    stages: tuple[StageTime, ...]
    batch_size: int
    training: TrainingProfile
    plain: TrainingProfile
    operations: tuple[Operation, ...]
    functions: tuple[Operation, ...]
    trace: str | None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        plain = {name: value for name, value in vars(self).items() if name not in ("training", "plain")}
        for name in ("stages", "operations", "functions"):
            plain[name] = [vars(item) for item in plain[name]]
        return plain | {
            "training": self.training.to_json(),
            "erm": self.plain.to_json(),
            "times_erm": {"step": ratio(self.training.step, self.plain.step), "total": self.times},
        }

    @property
    def times(self) -> float | None:
        """How many times the plain training's time the whole training takes."""
        return ratio(self.training.total, self.plain.total)


def ratio(value: float, to: float) -> float | None:
    """The quotient, or None where there is none."""
    return value / to if to > 0 else None
