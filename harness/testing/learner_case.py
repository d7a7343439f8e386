"""A learner under test, with the trainings that several checks look at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.data import TaskKind
from harness.testing.report import Skip
from harness.testing.rig import BATCH, EPOCHS, SEED, Prepared, Result, prepare, train
from harness.testing.rng import all_states
from harness.testing.settings import EVERYWHERE
from harness.testing.toys import Toy, toy
from harness.testing.watch import Watch
from harness.training.bases import Learner


@dataclass
class LearnerSubject:
    """A learner's class, the toy set of a task it supports, and what was trained so far."""

    cls: type[Learner]
    _results: dict[str, tuple[dict[str, Any], Watch, Result]] = field(default_factory=dict, repr=False)
    _watched: dict[str, tuple[Prepared, Watch, Result]] = field(default_factory=dict, repr=False)
    _broken: bool = False
    _toys: dict[str, Toy] = field(default_factory=dict, repr=False)

    @property
    def base(self) -> dict[str, Any]:
        """The settings of all checks: the defaults but for ``probes["*"]``, such as shorter schedules."""
        return dict(self.cls.probes.get(EVERYWHERE, {}))

    @property
    def task(self) -> TaskKind:
        """The task on which the checks are made: the first of several classes, two classes, several tasks."""
        kinds: tuple[TaskKind, ...] = ("multiclass", "binary", "multitask")
        return next(kind for kind in kinds if kind in self.cls.tasks)

    def toy(self, kind: TaskKind | None = None) -> Toy:
        """The ordinary toy set of a task."""
        wanted = kind or self.task
        if wanted not in self._toys:
            self._toys[wanted] = toy(wanted, parts=self.cls.reads_parts)
        return self._toys[wanted]

    def result(self, values: Mapping[str, Any] | None = None, seed: int = SEED) -> Result:
        """A training on the ordinary toy set with these settings on top of the base's."""
        settings = {**self.base, **(values or {})}
        key = json.dumps([settings, seed], sort_keys=True)
        if key not in self._results:
            _, seen, found = watch(self.cls, settings, self.toy(), seed=seed, by_term=False)
            self._results[key] = dict(values or {}), seen, found
        return self._results[key][2]

    def tried(self) -> Iterator[tuple[dict[str, Any], Watch]]:
        """All settings that :meth:`result` was asked for, and what was seen of their trainings."""
        yield from ((values, seen) for values, seen, _ in self._results.values())

    def watched(self, values: Mapping[str, Any] | None = None) -> tuple[Prepared, Watch, Result]:
        """The same training, watched; its learner is left trained.

        Raises:
            Skip: the ordinary training failed before; one check tells of it, not all.
        """
        if self._broken:
            raise Skip("the ordinary training fails")
        settings = {**self.base, **(values or {})}
        key = json.dumps(settings, sort_keys=True)
        if key not in self._watched:
            try:
                self._watched[key] = watch(self.cls, settings, self.toy())
            except Exception:
                self._broken = not values
                raise
        return self._watched[key]


def watch(
    cls: type[Learner],
    values: Mapping[str, Any],
    data: Toy,
    *,
    seed: int = SEED,
    epochs: int = EPOCHS,
    batch_size: int = BATCH,
    by_term: bool = True,
) -> tuple[Prepared, Watch, Result]:
    """A watched training on some toy set."""
    seen = Watch(by_term=by_term)
    prepared = prepare(cls, values, data, seed=seed, epochs=epochs, batch_size=batch_size, watch_build=seen.building)
    before = all_states()
    with seen.training(prepared.learner):
        found = train(prepared, epochs=epochs, batch_size=batch_size)
    if all_states() != before:
        seen.seeding["predicting seeds a global generator or draws from it"] = None
    return prepared, seen, found
