"""One row of the table: a method on a dataset, with its settings, environment and configurations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from harness.data import Declaration
from harness.errors import did_you_mean
from harness.spec import ComponentSpec, Configuration, Pipeline, Row, SelectSettings
from harness.suite.methods import Method, put_path, value_text
from harness.suite.overlay import merge, over_model
from harness.suite.parts import Part, Parts
from harness.suite.settings import MODEL, ROLES, TRAIN
from harness.suite.tree import Leaf, Place, Table, Tree, plain, planted

MAX_CONFIGURATIONS = 10_000


@dataclass(frozen=True)
class Column:
    """A dataset of the suite: its component, declaration, the protocol's defaults for its family, its own table."""

    label: str
    spec: ComponentSpec
    declared: Declaration
    family: Table
    table: Table
    place: Place


class RowBuilder:
    """Makes rows; what is wrong is noted in ``parts.problems``."""

    def __init__(self, parts: Parts, protocol: Table, suite: Table, budget: int | None) -> None:
        self.parts, self.problems = parts, parts.problems
        self.protocol, self.suite, self.budget = protocol, suite, budget

    def row(self, column: Column, method: Method) -> Row | None:
        """A method on a dataset, or None after a noted problem."""
        before = len(self.problems)
        tree = self._settled(column, method)
        select = self.parts.select(tree.table("select"))
        self._check_split(column, select, tree)
        tuned = self._axes(tree, method)
        points = list(self._points(tree, tuned, method))
        configurations = [c for point in points if (c := self._configuration(column, method, tree, point)) is not None]
        if len(self.problems) > before:
            return None
        distinct = {_content(configuration): configuration for configuration in reversed(configurations)}
        kept = [configuration for configuration in configurations if distinct[_content(configuration)] is configuration]
        return Row(method.label, column.label, tuple(kept), select, tuple(path for path, _ in tuned))

    def _settled(self, column: Column, method: Method) -> Table:
        """The method's table under all defaults: protocol, family, suite, dataset, method."""
        tree = method.tree
        layers = [self.protocol, column.family, self.suite, column.table, method.tree]
        for section, rule in (("model", over_model), ("train", merge), ("select", merge)):
            result = Table(method.place)
            for layer in layers:
                result = rule(result, layer.table(section))
            tree = tree.put(section, result, tree.key(section))
        return tree

    def _check_split(self, column: Column, select: SelectSettings, tree: Table) -> None:
        allowed = ["auto", *(split for split, role in column.declared.splits.items() if role == "val")]
        if select.split not in allowed:
            value = tree.table("select").entries["split"]
            hint = did_you_mean(select.split, allowed)
            message = f"dataset '{column.label}' has no validation split '{select.split}'{hint}; allowed: {', '.join(allowed)}"
            self.problems.add(value.place, message)

    def _axes(self, tree: Table, method: Method) -> list[tuple[str, tuple[Tree, ...]]]:
        """The tuned paths in canonical order with their values."""
        found: dict[str, tuple[Tree, ...]] = {}
        for path, values in tree.table("tune").entries.items():
            if isinstance(values, Leaf) and values.value == "default":
                roles = [role for role in ROLES if role != "encoder"] if path == "*" else [path.partition(".")[0]]
                for role in roles:
                    found |= self._search_space(tree, role, path, values.place)
                continue
            several = self.parts.several(values, f"'{path}' in 'tune'")
            if several is not None and self._known(tree, path, tree.table("tune").key(path)):
                found[path] = several
        del method
        return sorted(found.items())

    def _search_space(self, tree: Table, role: str, path: str, place: Place) -> dict[str, tuple[Tree, ...]]:
        """The class's own search values of one component, or of one of its hyperparameters."""
        part = self._part(tree, role)
        if part is None:
            return {}
        wanted = path.partition(".")[2]
        if wanted and self.parts.hparam(part.entry, wanted, place) is None:
            return {}
        found = {}
        for name, declared in part.entry.hparams.items():
            if wanted not in ("", name) or declared.search is None or f"{role}.{name}" in tree.table("tune"):
                continue
            if wanted or (declared.is_active(part.values) and name not in tree.table(role)):
                found[f"{role}.{name}"] = tuple(planted(value, place) for value in declared.search)
        if wanted and not found and part.entry.hparams[wanted].search is None:
            self.problems.add(place, f"'{wanted}' of {part.entry.kind} '{part.entry.name}' declares no search values")
        return found

    def _part(self, tree: Table, role: str) -> Part | None:
        table = tree.table(role).without(["pool"])
        return self.parts.component(role, table) if role in tree else None

    def _known(self, tree: Table, path: str, place: Place) -> bool:
        """Whether a tuned path leads to a value."""
        head, _, name = path.partition(".")
        if head == "train":
            allowed: list[str] = list(TRAIN)
        elif head == "model":
            model = self.parts.model(tree.table("model"))
            allowed = [*MODEL, "backbone", *(model[0].entry.hparams if model else ())]
        elif head in tree:
            part = self.parts.component("environment" if head == "envs" else head, tree.table(head).without(["pool"]))
            allowed = list(part.entry.hparams) if part else [name]
        else:
            self.problems.add(place, f"'tune' names '{head}', which this method does not have")
            return False
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            self.problems.add(
                place, f"'tune' names '{path}', but there is no '{name}' in it{hint}; there are: {', '.join(allowed)}"
            )
        return name in allowed

    def _points(
        self, tree: Table, axes: list[tuple[str, tuple[Tree, ...]]], method: Method
    ) -> Iterator[dict[str, Tree]]:
        """The grid in canonical order, or as many of its points as the budget allows."""
        size = 1
        for _, values in axes:
            size *= len(values)
        if size > MAX_CONFIGURATIONS:
            self.problems.add(tree.key("tune"), f"'tune' gives {size:,} configurations; at most {MAX_CONFIGURATIONS:,}")
            return
        names = [path for path, _ in axes]
        points = [dict(zip(names, point, strict=True)) for point in product(*(values for _, values in axes))]
        if self.budget is not None and len(points) > self.budget:
            drawn = sorted(points, key=lambda point: _lot(method.family, point))[: self.budget]
            points = [point for point in points if any(point is other for other in drawn)]
        yield from points

    def _configuration(
        self, column: Column, method: Method, tree: Table, point: dict[str, Tree]
    ) -> Configuration | None:
        for path, value in point.items():
            tree = put_path(tree, path, value)
        parts = {role: self._part(tree, role) for role in ROLES if role in tree}
        model = self.parts.model(tree.table("model"))
        train = self.parts.train(tree.table("train"))
        if model is None or any(part is None for part in parts.values()):
            return None
        found = {role: part for role, part in parts.items() if part is not None}
        learner = found.get("baseline") or found["decorrelator"]
        if not self._check_task(column, method, learner):
            return None
        pipeline = None
        if "baseline" not in found:
            encoders = self._encoders(tree, found["encoder"])
            if encoders is None:
                return None
            pipeline = Pipeline(encoders, found["quantifier"].spec, found["decorrelator"].spec)
        values = {path: _typed(found, path, plain(value)) for path, value in point.items()}
        return Configuration(
            id=_identifier(values),
            values=values,
            learner=learner.spec,
            pipeline=pipeline,
            environment=self._environment(column, method, tree, learner),
            model=model[1],
            train=train,
        )

    def _encoders(self, tree: Table, part: Part) -> tuple[ComponentSpec, ...] | None:
        pool = tree.table("encoder").table("pool")
        return self.parts.pool(part, pool) if pool else (part.spec,)

    def _check_task(self, column: Column, method: Method, learner: Part) -> bool:
        kind = column.declared.task.kind
        supported = learner.entry.traits.get("tasks", [kind])
        if kind not in supported:
            message = (
                f"{learner.entry.kind} '{learner.entry.name}' of method '{method.label}' does not support {kind} tasks "
                f"(dataset '{column.label}'); it supports: {', '.join(supported)}"
            )
            self.problems.add(learner.place, message)
        return kind in supported

    def _environment(self, column: Column, method: Method, tree: Table, learner: Part) -> ComponentSpec | None:
        """What supplies environment ids, checked against what the dataset has."""
        if "environments" not in learner.entry.traits.get("needs", ()):
            if "envs" in method.tree:
                message = f"method '{method.label}' is given 'envs', but '{learner.entry.name}' uses no environments"
                self.problems.add(method.tree.key("envs"), message)
            return None
        table = tree.table("envs") if "envs" in tree else column.table.table("envs")
        if not table:
            return self._own_environments(column, method, learner)
        part = self.parts.component("environment", table)
        if part is None:
            return None
        if part.entry.traits.get("requires") == "env" and not column.declared.environments:
            message = f"environment '{part.entry.name}' needs a dataset with environments of its own; '{column.label}' has none"
            self.problems.add(part.place, message)
        missing = set(part.entry.traits.get("oracle", ())) - set(column.declared.oracle)
        if missing:
            known = ", ".join(column.declared.oracle) or "none"
            message = (
                f"environment '{part.entry.name}' opens the oracle field '{min(missing)}', which '{column.label}' lacks"
            )
            self.problems.add(part.place, f"{message}; its oracle fields: {known}")
        return part.spec

    def _own_environments(self, column: Column, method: Method, learner: Part) -> ComponentSpec | None:
        entries = self.parts.catalog.of_kind("environment")
        own = next((entry for entry in entries if entry.traits.get("requires") == "env"), None)
        if column.declared.environments and own is not None:
            return ComponentSpec("environment", own.name)
        known = ", ".join(
            f"{entry.name}(…)" if entry.traits.get("positional") else entry.name
            for entry in entries
            if entry is not own
        )
        message = (
            f"method '{method.label}' ('{learner.entry.name}') needs environments and dataset '{column.label}' has none; "
            f"say which with 'envs:' on the method or the dataset; there are: {known}"
        )
        self.problems.add(method.place, message)
        return None


def _typed(parts: dict[str, Part], path: str, value: Any) -> Any:
    """A tuned value in its declared type, so that 1 and 1.0 are shown alike."""
    head, _, name = path.partition(".")
    declared = TRAIN.get(name) if head == "train" else MODEL.get(name) if head == "model" else None
    if head in parts:
        declared = parts[head].entry.hparams.get(name)
    try:
        return value if declared is None else declared.coerce(value)
    except ValueError:
        return value


def _identifier(values: dict[str, Any]) -> str:
    """``penalty=1, layers=3``; whole paths where the last steps are not distinct; ``-`` without tuned values."""
    last = [path.rpartition(".")[2] for path in values]
    names = last if len(set(last)) == len(last) else list(values)
    return ", ".join(f"{name}={value_text(value)}" for name, value in zip(names, values.values(), strict=True)) or "-"


def _lot(family: str, point: dict[str, Tree]) -> str:
    """A point's place in a draw that depends on names and values alone."""
    values = {path: plain(value) for path, value in point.items()}
    return hashlib.sha256(json.dumps([family, values], sort_keys=True, default=str).encode()).hexdigest()


def _content(configuration: Configuration) -> str:
    """What makes two configurations the same training."""
    parts = [
        configuration.learner,
        configuration.pipeline,
        configuration.environment,
        configuration.model,
        configuration.train,
    ]
    return repr(parts)
