"""Turn a method's tuned hyperparameters into configurations: the grid, ``tune: default`` and the budget.

Axes are sorted by path, so that the order of keys in a file changes neither the configurations nor their order;
the order of values in a list does (ties are won by the first declared).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from harness.errors import did_you_mean
from harness.hparams import DATASET, HParam, effective
from harness.suite.components import Part, Parts
from harness.suite.effects import Scope, Uses, Written
from harness.suite.methods import value_text
from harness.suite.normal import decisions
from harness.suite.settings import PARTS, TRAIN, TrainSettings
from harness.suite.spec import MODEL, ComponentSpec, Configuration, ModelSettings, Pipeline
from harness.suite.tree import Leaf, Place, Table

MAX_GRID = 100_000


@dataclass(frozen=True)
class Base:
    """A method on a dataset before anything is tuned.

    Attributes:
        parts: the baseline, or the pipeline's three parts, by role.
        pool: the encoder's architectures; empty for a baseline.
        environment: what supplies environments, or None.
        backbone, model, train: the settings after all overrides; ``written`` says where those of ``train`` stand.
        facts: what else decides whether a value has an effect, see :func:`harness.suite.effects.facts_of`.
    """

    parts: Mapping[str, Part]
    pool: tuple[ComponentSpec, ...]
    environment: Part | None
    backbone: Part
    model: ModelSettings
    train: TrainSettings
    written: Mapping[str, Written]
    facts: Mapping[str, Any]

    def part(self, head: str) -> Part | None:
        """The component that a path's first step names."""
        if head == "envs":
            return self.environment
        return self.backbone if head == "model" else self.parts.get(head)

    @property
    def components(self) -> dict[str, Part]:
        """All components by the first step of a path."""
        others = {"model": self.backbone, **({"envs": self.environment} if self.environment else {})}
        return {**self.parts, **others}


@dataclass(frozen=True)
class Found:
    """The configurations of a row, and what the values written for it do."""

    configurations: tuple[Configuration, ...]
    uses: Uses


class Search:
    """Makes the configurations of a method on a dataset."""

    def __init__(self, parts: Parts, budget: int | None) -> None:
        self.parts, self.problems, self.budget = parts, parts.problems, budget

    def configurations(self, tree: Table, base: Base) -> Found | None:
        """All configurations, at most ``budget``; None after a noted problem."""
        axes = self._axes(tree, base)
        if axes is None:
            return None
        size = prod(map(len, axes.values()))
        if size > MAX_GRID:
            message = f"the grid has {size:,} configurations; at most {MAX_GRID:,} are allowed"
            self.problems.add(tree.table("tune").place, message)
            return None
        row = _Row(base, tree)
        points = _distinct(row.point(dict(zip(axes, values, strict=True))) for values in product(*axes.values()))
        drawn = _draw(points, self.budget)
        return Found(tuple(row.configuration(_name(point, list(axes)), point) for point in drawn), row.uses)

    def check(self, tree: Table, parts: Mapping[str, Part]) -> None:
        """Note what is wrong with the axes of a method's own components, on whatever dataset."""
        tune = tree.table("tune")
        for path in tune:
            head, dot, _ = path.partition(".")
            if dot and head in parts:
                self._values(path, tune, parts.get)

    def _axes(self, tree: Table, base: Base) -> dict[str, tuple[Any, ...]] | None:
        """Path -> the values to try, in the order of the paths; None after a noted problem."""
        before = len(self.problems)
        tune = tree.table("tune")
        axes = {path: self._values(path, tune, base.part) for path in tune if "." in path}
        whole = [path for path in tune if "." not in path]
        taken = {*decisions(tree), *axes} if whole else set()
        for path in whole:
            heads = [role for role in PARTS if role in base.parts] if path == "*" else [path]
            spaces = [space for head in heads for space in _search_spaces(head, base, taken)]
            if not spaces:
                whose = "this method's components declare" if path == "*" else f"this {path} declares"
                message = f"'tune: default', but {whose} no search space for what is left to tune"
                self.problems.add(tune.key(path), message)
            axes.update(spaces)
        return dict(sorted(axes.items())) if len(self.problems) == before else None

    def _values(self, path: str, tune: Table, part_of: Callable[[str], Part | None]) -> tuple[Any, ...]:
        tree = tune.entries[path]
        declared = self._declared(path, tune.key(path), part_of)
        if declared is None:
            return ()
        if not isinstance(tree, Leaf) or tree.value != "default":
            return self.parts.axis(declared, tree)
        if declared.search is None:
            self.problems.add(tree.place, f"'{path}' has no search space on its class; list the values to try")
        return declared.search or ()

    def _declared(self, path: str, place: Place, part_of: Callable[[str], Part | None]) -> HParam | None:
        head, _, name = path.partition(".")
        if head == "train":
            if name not in TRAIN:
                message = f"'train' has no '{name}' to tune{did_you_mean(name, TRAIN)}; it has: {', '.join(TRAIN)}"
                self.problems.add(place, message)
            return TRAIN.get(name)
        if head == "model" and name in MODEL:
            return MODEL[name]
        if head == "model" and name == "backbone":
            self.problems.add(place, "'tune' takes hyperparameters; to compare backbones use 'matrix'")
            return None
        part = part_of(head)
        if part is None:
            self.problems.add(place, f"'{path}' is tuned, but this method uses no {head}")
            return None
        return self.parts.hparam(part.entry, name, place)


def _search_spaces(head: str, base: Base, taken: set[str]) -> list[tuple[str, tuple[Any, ...]]]:
    """The search spaces that a component's class declares, of hyperparameters that nothing else decides."""
    part = base.part(head)
    if part is None:
        return []
    spaces = {name: item for name, item in part.entry.hparams.items() if item.search and f"{head}.{name}" not in taken}
    fixed = {name: value for name, value in part.values.items() if name not in spaces}
    return [(f"{head}.{name}", item.search or ()) for name, item in spaces.items() if item.is_active(fixed)]


class _Row:
    """A method on a dataset: its points without what has no effect there, and the configurations that they make."""

    def __init__(self, base: Base, tree: Table) -> None:
        self.base, self.uses = base, Uses()
        self._tune = tree.table("tune")
        self._scopes = {head: self._scope(head, part, tree) for head, part in base.components.items()}
        self._scopes["train"] = Scope("'train'", TRAIN, [vars(base.train)], base.written)
        self._idle: dict[tuple[str, str], set[str]] = {}

    def _scope(self, head: str, part: Part, tree: Table) -> Scope:
        title, declared = f"{part.entry.kind} '{part.entry.name}'", part.entry.hparams
        if head != "encoder":
            return Scope(title, declared, [part.spec.params], part.places)
        pooled = tree.table(head).table("pool")
        places = {**part.places, **{name: (pooled.key(name), name) for name in pooled}}
        return Scope(title, declared, [spec.params for spec in self.base.pool], places)

    def point(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The tuned values that have an effect beside each other."""
        gone = {f"{head}.{name}" for head in self._scopes for name in self._without_effect(head, _below(head, values))}
        return {path: value for path, value in values.items() if path not in gone}

    def _without_effect(self, head: str, own: Mapping[str, Any]) -> set[str]:
        known = (head, repr(own))
        if known not in self._idle:
            paths = {name: f"{head}.{name}" for name in own}
            axes = {name: (self._tune.key(path), path) for name, path in paths.items() if path in self._tune}
            self._idle[known] = self._scopes[head].idle(own, axes, self.base.facts, self.uses)
        return self._idle[known]

    def configuration(self, name: str, values: Mapping[str, Any]) -> Configuration:
        """The configuration with these tuned values."""
        base = self.base
        specs = {head: self._spec(part.spec, part, _below(head, values)) for head, part in base.components.items()}
        pipeline = None
        if "baseline" not in specs:
            own = _below("encoder", values)
            pool = [self._spec(spec, base.parts["encoder"], own) for spec in base.pool]
            distinct = tuple(spec for at, spec in enumerate(pool) if spec not in pool[:at])
            pipeline = Pipeline(distinct, specs["quantifier"], specs["decorrelator"])
        model = {key: value for key, value in _below("model", values).items() if key in MODEL}
        train = replace(base.train, **_below("train", values))
        return Configuration(
            id=name,
            values=dict(values),
            learner=specs["baseline"] if pipeline is None else pipeline.decorrelator,
            pipeline=pipeline,
            environment=specs.get("envs"),
            model=replace(base.model, backbone=specs["model"], **model),
            train=train.effective({DATASET: base.facts[DATASET]}),
        )

    def _spec(self, spec: ComponentSpec, part: Part, own: Mapping[str, Any]) -> ComponentSpec:
        declared = part.entry.hparams
        values = {**spec.params, **{key: value for key, value in own.items() if key in declared}}
        return replace(spec, params=effective(declared, dict(sorted(values.items())), self.base.facts)[0])


def _below(head: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a point for one component, by name."""
    return {path.partition(".")[2]: value for path, value in values.items() if path.partition(".")[0] == head}


def _text(point: Mapping[str, Any]) -> str:
    return json.dumps(point, sort_keys=True)


def _distinct(points: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Equal configurations collapse to the first."""
    found: dict[str, dict[str, Any]] = {}
    for point in points:
        found.setdefault(_text(point), point)
    return list(found.values())


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


def _name(point: Mapping[str, Any], names: list[str]) -> str:
    """``penalty=1, layers=3``; a path in full where two axes end alike."""
    shorts = [name.rpartition(".")[2] for name in names]
    parts = []
    for path, value in point.items():
        short = path.rpartition(".")[2]
        parts.append(f"{short if shorts.count(short) == 1 else path}={value_text(value)}")
    return ", ".join(parts) or "-"
