"""Turn a method's tuned hyperparameters into configurations: the grid, ``tune: default``, the budget and samplers.

Axes are sorted by path, so that the order of keys in a file changes neither the configurations nor their order;
the order of values in a list does (ties are won by the first declared).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import product
from math import prod
from typing import Any

from harness.errors import did_you_mean
from harness.hparams import DATASET, HParam
from harness.suite.components import Part, Parts
from harness.suite.effects import Uses, noted
from harness.suite.layers import Decision, Flat
from harness.suite.methods import value_text
from harness.suite.settings import ROLES, TRAIN, TUNE, TrainSettings, TuneSettings
from harness.suite.spec import MODEL, Ask, ComponentSpec, Configuration, ModelSettings, Pipeline
from harness.suite.tree import Leaf, Place, Table, plain

MAX_GRID = 100_000
STARTUP = 10
"""Random trials before TPE looks at scores: Optuna's default."""
_DRAWS = 100
"""Draws of one trial, after which the first configuration that has not been tried is taken."""
Point = Mapping[str, Any]
"""Tuned values by path."""


@dataclass(frozen=True)
class Base:
    """A method on a dataset before anything is tuned.

    Attributes:
        parts: the baseline, or the pipeline's three parts, and what supplies environments, by role; the backbone as
            ``model``.
        pool: the encoder's architectures; empty for a baseline.
        model, train: the settings after all overrides.
        written: the decisions on them and on the method's parts.
        facts: what else decides whether a value has an effect, see :func:`harness.suite.effects.facts_of`.
        uses: receives what values do.
    """

    parts: Mapping[str, Part]
    pool: tuple[ComponentSpec, ...]
    model: ModelSettings
    train: TrainSettings
    written: Flat
    facts: Mapping[str, Any]
    uses: Uses = field(default_factory=Uses)
    _known: dict[tuple[str, str], tuple[list[dict[str, Any]], set[str]]] = field(default_factory=dict)

    def point(self, values: Point) -> dict[str, Any]:
        """The tuned values that have an effect beside each other."""
        gone = {f"{head}.{name}" for head in (*self.parts, "train") for name in self._effects(head, values)[1]}
        return {path: value for path, value in values.items() if path not in gone}

    def _effects(self, head: str, values: Point) -> tuple[list[dict[str, Any]], set[str]]:
        """A part's values beside the tuned ones, of each architecture of a pool, and the names without effect in any.

        The values are those that have an effect.
        """
        part, given, below = self.parts.get(head), [vars(self.train)], _below(head, values)
        about: tuple[str, str, Mapping[str, HParam]] = ("'train'", "train", TRAIN)
        if part is not None:
            given = [dict(spec.params) for spec in (self.pool if head == "encoder" else [part.spec])]
            about = (f"{part.entry.kind} '{part.entry.name}'", head, part.entry.hparams)
        own = {name: value for name, value in below.items() if name in about[2]}
        known = (head, repr(own))
        if known not in self._known:
            every = [dict(sorted({**one, **own}.items())) for one in given]
            found = [noted(about, one, self.facts, self.written, self.uses) for one in every]
            self._known[known] = [kept for kept, _ in found], set.intersection(*(set(idle) for _, idle in found))
        return self._known[known]

    def configuration(self, values: Point, axes: Iterable[str]) -> Configuration:
        """The configuration with these tuned values."""
        specs = {
            head: [replace(part.spec, params=params) for params in self._effects(head, values)[0]]
            for head, part in self.parts.items()
        }
        pipeline = None
        if "encoder" in specs:
            pool = specs["encoder"]
            distinct = tuple(spec for at, spec in enumerate(pool) if spec not in pool[:at])
            pipeline = Pipeline(distinct, specs["quantifier"][0], specs["decorrelator"][0])
        model = {key: value for key, value in _below("model", values).items() if key in MODEL}
        train = replace(self.train, **_below("train", values))
        return Configuration(
            id=_name(values, axes),
            values=dict(values),
            learner=specs["baseline"][0] if pipeline is None else pipeline.decorrelator,
            pipeline=pipeline,
            environment=specs["envs"][0] if "envs" in specs else None,
            model=replace(self.model, backbone=specs["model"][0], **model),
            train=train.effective({DATASET: self.facts[DATASET]}),
        )


@dataclass(frozen=True)
class Found:
    """The configurations of a method on a dataset.

    Attributes:
        known: those that need no score to be known; ``ask`` gives the ``pending`` others.
        possible: those among which all of them are.
    """

    known: tuple[Configuration, ...]
    possible: Iterable[Configuration]
    pending: int = 0
    ask: Ask | None = None


class Search:
    """Makes the configurations of a method on a dataset, by the suite's budget or sampler; of a quick run one."""

    def __init__(self, parts: Parts, top: Table, *, quick: bool) -> None:
        self.parts, self.problems = parts, parts.problems
        budget, tune = (None if key not in top else plain(top.entries[key]) for key in ("budget", "tune"))
        if tune is not None and budget is not None:
            text = "'budget' caps the grid, and 'tune' draws from it; make one of them null"
            self.problems.add(top.key("tune"), text)
        if tune is not None and find_spec("optuna") is None:
            self.problems.add(top.key("tune"), "'tune' needs Optuna: pip install 'equad-bench[optuna]'")
            tune = None
        self.budget: int | None = 1 if quick else budget and int(budget)
        given = {name: TUNE[name].coerce(value) for name, value in (tune or {}).items()}
        self.tune = None if quick or tune is None else TuneSettings(**given)

    def configurations(self, flat: Flat, base: Base) -> Found | None:
        """All configurations, or as many as were asked for; None after a noted problem."""
        before = len(self.problems)
        axes = self._axes(flat, base)
        size = prod(map(len, axes.values()))
        if size > MAX_GRID:
            place = next(one.place for one in flat.values() if one.way == "tune")
            self.problems.add(place, f"the grid has {size:,} configurations; at most {MAX_GRID:,} are allowed")
        if len(self.problems) > before:
            return None
        every = (base.point(dict(zip(axes, values, strict=True))) for values in product(*axes.values()))
        points = list({_text(point): point for point in every}.values())  # equal ones collapse to the first
        if self.tune is None or len(points) <= self.tune.trials:
            known = tuple(base.configuration(point, axes) for point in _draw(points, self.budget))
            return Found(known, known)
        trials = Trials(self.tune, axes, base.point)
        known = tuple(base.configuration(point, axes) for point in trials.known(points[0]))
        asked: dict[tuple[float, ...], Configuration] = {}

        def ask(tried: Sequence[Configuration], scores: Sequence[float]) -> Configuration:
            at = tuple(scores)
            if at not in asked:  # the same scores lead to the same trial, whoever asks
                asked[at] = base.configuration(trials.next([one.values for one in tried], scores), axes)
            return asked[at]

        possible = (base.configuration(point, axes) for point in points)
        return Found(known, possible, self.tune.trials - len(known), ask)

    def _axes(self, flat: Flat, base: Base) -> dict[str, Sequence[Any]]:
        """Path -> the values to try, in the order of the paths; faults are noted."""
        tune = {path: one for path, one in flat.items() if one.way == "tune"}
        axes = {path: self._values(path, one, base) for path, one in tune.items() if not path.endswith("*")}
        for path in [path for path in tune if path not in axes]:
            head = path.removesuffix(".*")
            heads = [role for role in ROLES if role in base.parts] if head == "*" else [head]
            spaces = {path: space for head in heads for path, space in _search_spaces(head, base, flat).items()}
            if not spaces:
                whose = "this method's components declare" if head == "*" else f"this {head} declares"
                text = f"'tune: default', but {whose} no search space for what is left to tune"
                self.problems.add(tune[path].place, text)
            axes.update(spaces)
        return dict(sorted(axes.items()))

    def _values(self, path: str, one: Decision, base: Base) -> Sequence[Any]:
        declared = self._declared(path, one.place, base)
        if declared is None or not isinstance(one.value, Leaf):
            return self.parts.axis(declared, one.value)
        if declared.search is None:
            self.problems.add(one.value.place, f"'{path}' has no search space on its class; list the values to try")
        return declared.search or ()

    def _declared(self, path: str, place: Place, base: Base) -> HParam | None:
        head, _, name = path.partition(".")
        settings = {"train": TRAIN, "model": MODEL}.get(head, {})
        if name in settings:
            return settings[name]
        part = base.parts.get(head)
        if part is not None:
            return self.parts.hparam(part.entry, name, place)
        why = f"'{head}' has no '{name}'{did_you_mean(name, settings)}" if settings else f"this method uses no {head}"
        self.problems.add(place, f"'{path}' is tuned, but {why}")
        return None


def _search_spaces(head: str, base: Base, taken: Container[str]) -> dict[str, tuple[Any, ...]]:
    """The search spaces that a component's class declares, of hyperparameters that nothing else decides."""
    part = base.parts.get(head)
    if part is None:
        return {}
    spaces = {name: item for name, item in part.entry.hparams.items() if item.search and f"{head}.{name}" not in taken}
    fixed = {name: value for name, value in part.values.items() if name not in spaces}
    return {f"{head}.{name}": item.search or () for name, item in spaces.items() if item.is_active(fixed)}


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


def _below(head: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a point for one component, by name."""
    return {path.partition(".")[2]: value for path, value in values.items() if path.partition(".")[0] == head}


def _text(point: Mapping[str, Any]) -> str:
    return json.dumps(point, sort_keys=True)


def _draw(points: list[dict[str, Any]], budget: int | None) -> list[dict[str, Any]]:
    """The first declared configuration and ``budget - 1`` others, in the grid's order.

    The draw depends on the axes' names and values alone: a configuration is ranked by the digest of its text.
    A grid of no more than ``budget`` configurations is taken whole.
    """
    if budget is None or len(points) <= budget:
        return points
    ranked = sorted(points[1:], key=lambda point: hashlib.sha256(_text(point).encode()).hexdigest())
    drawn = {_text(point) for point in [points[0], *ranked[: budget - 1]]}
    return [point for point in points if _text(point) in drawn]


def _name(point: Mapping[str, Any], axes: Iterable[str]) -> str:
    """``penalty=1, layers=3``; a path in full where two axes end alike."""
    shorts = [path.rpartition(".")[2] for path in axes]
    parts = []
    for path, value in point.items():
        short = path.rpartition(".")[2]
        parts.append(f"{short if shorts.count(short) == 1 else path}={value_text(value)}")
    return ", ".join(parts) or "-"


def departures_from(protocol: Mapping[str, Any], ours: Configuration, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what of a configuration is not the protocol's, e.g. ``epochs 6 (protocol 50)``, without what was tuned.

    Args:
        protocol: values by dotted path, and by name the defaults of the configuration's backbone.
        facts: of the dataset, by which some settings have no effect.
    """
    train = {path.removeprefix("train."): value for path, value in protocol.items() if path.startswith("train.")}
    theirs = {path.removeprefix("model."): value for path, value in protocol.items()}
    theirs |= vars(TrainSettings(**train).effective({DATASET: facts[DATASET]}))
    model = {**vars(ours.model), "backbone": ours.model.backbone.name, **ours.model.backbone.params}
    tuned = {path.rpartition(".")[2] for path in ours.values if path.startswith(("model.", "train."))}
    return tuple(
        f"{name} {value_text(value)} (protocol {value_text(theirs[name])})"
        for name, value in {**model, **vars(ours.train)}.items()
        if name not in tuned and theirs[name] != value
    )
