"""Choose the trials of a search by Optuna, so that equal scores give equal trials, whoever asks and whenever."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from harness.suite.settings import TuneSettings

STARTUP = 10
"""Random trials before TPE looks at scores: Optuna's default."""
_DRAWS = 100
"""Draws of one trial, after which the first configuration that has not been tried is taken."""
Point = Mapping[str, Any]
"""Tuned values by path."""


@dataclass(frozen=True)
class Trials:
    """The trials of one search; it has more configurations than trials are made.

    Attributes:
        axes: path -> the values to try.
        effective: leaves out the values that have no effect beside the others.
    """

    tune: TuneSettings
    axes: Mapping[str, Sequence[Any]]
    effective: Callable[[Point], Point]

    def known(self, first: Point) -> list[Point]:
        """The trials that need no scores, all of them different; the first is given."""
        tried = [first]
        while len(tried) < self.tune.trials and (self.tune.sampler == "random" or len(tried) < STARTUP):
            tried.append(self.next(tried, ()))
        return tried

    def next(self, tried: Sequence[Point], scores: Sequence[float]) -> Point:
        """The trial after those that were tried, by their scores, more being better; -inf is worst.

        It is drawn by a seed that depends on the axes and on its number alone. Of values without effect Optuna is told
        nothing; one drawn again stays a running trial there, which leads the sampler away from it.
        """
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)  # it tells of every study
        text = json.dumps([list(self.axes.items()), len(tried)])
        seed = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
        sampler: optuna.samplers.BaseSampler = optuna.samplers.RandomSampler(seed)
        if scores:
            sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP, constant_liar=True)
        choices: dict[str, optuna.distributions.BaseDistribution] = {
            path: optuna.distributions.CategoricalDistribution(range(len(values))) for path, values in self.axes.items()
        }
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for point, score in zip(tried, scores, strict=False):
            told = {path: self.axes[path].index(value) for path, value in point.items()}
            study.add_trial(
                optuna.create_trial(params=told, distributions={path: choices[path] for path in told}, value=score)
            )
        for _ in range(_DRAWS):
            drawn = study.ask(choices).params
            point = self.effective({path: values[drawn[path]] for path, values in self.axes.items()})
            if point not in tried:
                return point
        every = (self.effective(dict(zip(self.axes, values, strict=True))) for values in product(*self.axes.values()))
        return next(point for point in every if point not in tried)
