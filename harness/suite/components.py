"""Components and settings against the catalog: names, hyperparameters, types."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from harness.errors import did_you_mean
from harness.hparams import HParam
from harness.registry.catalog import Catalog, Entry
from harness.suite.effects import Uses, noted
from harness.suite.layers import Decision, Flat, under
from harness.suite.settings import BACKBONE, KIND_OF
from harness.suite.spec import MODEL, ComponentSpec, ModelSettings
from harness.suite.tree import Items, Place, Problems, Tree, describe, plain

MAX_POOL = 1_000


@dataclass(frozen=True)
class Part:
    """A component of the suite, found and checked; ``written`` has the values that the suite gives."""

    entry: Entry
    spec: ComponentSpec
    place: Place
    written: Flat = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        """All hyperparameters: the given values over the defaults."""
        return {**self.entry.defaults, **self.spec.params}


class Parts:
    """Checks components and settings, and notes what is wrong with them; ``own`` names the suite's own file."""

    def __init__(self, catalog: Catalog, problems: Problems, own: str = "") -> None:
        self.catalog, self.problems, self.own = catalog, problems, own

    def component(self, role: str, flat: Flat, others: Collection[str] = ()) -> Part | None:
        """The component of a role, or None after a noted problem; ``others`` of its names are none of its values."""
        kind, use = KIND_OF.get(role, role), flat.get(role)
        if use is None:
            place = next((one.place for one in flat.values()), Place(self.own, 1, 1))
            self.problems.add(place, f"this {kind} has no name; write {kind}: NAME or {{use: NAME, …}}")
            return None
        name, place = str(plain(use.value)), use.value.place
        entry = self.catalog.find(kind, name)
        if entry is None:
            self.problems.add(place, self.catalog.unknown(kind, name))
            return None
        before = len(self.problems)
        prefix = role.removesuffix(".backbone")
        given = {name: one for name, one in sorted(under(flat, prefix).items()) if name not in others}
        declared = {name: self.hparam(entry, name, one.place, others) for name, one in given.items()}
        values = self.values({name: item for name, item in declared.items() if item}, given)
        params = located(entry, values, given)
        if len(self.problems) > before:
            return None
        written = {f"{prefix}.{name}": one for name, one in given.items()}
        return Part(entry, ComponentSpec(kind, name, params), place, written)

    def alone(self, kind: str, flat: Flat, others: Collection[str] = ()) -> Part | None:
        """Return :meth:`component` of what no other part of the suite changes; refuse values without effect."""
        part = self.component(kind, flat, others)
        if part is None:
            return None
        uses, about = Uses(), (f"{kind} '{part.spec.name}'", kind, part.entry.hparams)
        kept, _ = noted(about, part.spec.params, {}, part.written, uses)
        uses.refuse(self.problems, self.own, spared={})
        return replace(part, spec=replace(part.spec, params=kept))

    def hparam(self, entry: Entry, name: str, place: Place, others: Collection[str] = ()) -> HParam | None:
        """A component's hyperparameter by name."""
        declared = entry.hparams.get(name)
        if declared is None:
            known = [*entry.hparams, *others]
            text = f"{entry.kind} '{entry.name}' has no hyperparameter '{name}'{did_you_mean(name, known)}"
            self.problems.add(place, f"{text}; it has: {', '.join(entry.hparams) or 'none'}")
        return declared

    def value(self, declared: HParam, tree: Tree) -> list[Any]:
        """A value in its declared type, alone in a list; an empty one after a noted problem."""
        try:
            return [coerced(declared, plain(tree))]
        except ValueError as error:
            self.problems.add(tree.place, str(error))
            return []

    def values(self, declared: Mapping[str, HParam], given: Flat) -> dict[str, Any]:
        """Those given values that are declared, in their types and in the order of declaration."""
        found = {name: self.value(item, given[name].value) for name, item in declared.items() if name in given}
        return {name: value for name, values in found.items() for value in values}

    def model(self, settings: Flat) -> tuple[Part, ModelSettings] | None:
        """``model``: the backbone with flat and own hyperparameters, readout and head."""
        part = self.component(BACKBONE, settings, ("backbone", *MODEL))
        own = self.values(MODEL, under(settings, "model"))
        return None if part is None else (part, ModelSettings(part.spec, **own))

    def pool(self, part: Part, flat: Flat) -> tuple[ComponentSpec, ...]:
        """The encoder's architectures: every combination of the pooled lists, in canonical order."""
        axes: dict[str, list[Any]] = {}
        pooled = under(flat, "encoder", "pool")
        for name, one in sorted(pooled.items()):
            values = self.axis(self.hparam(part.entry, name, one.place), one.value)
            distinct = [value for at, value in enumerate(values) if value not in values[:at]]
            axes[name] = sorted(distinct, key=lambda value: (value is None, value))
        size = prod(map(len, axes.values()))
        if size > MAX_POOL:
            text = f"the pool has {size:,} architectures; at most {MAX_POOL:,} are allowed"
            self.problems.add(next(iter(pooled.values())).place, text)
            return ()
        points = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
        return tuple(replace(part.spec, params=dict(sorted({**part.spec.params, **point}.items()))) for point in points)

    def axis(self, declared: HParam | None, tree: Tree) -> list[Any]:
        """Return the values of a list in their declared type; faults are noted."""
        if declared is None or not isinstance(tree, Items):
            return []
        return [value for item in tree.items for value in self.value(declared, item)]


def located(entry: Entry, params: Mapping[str, Any], given: Flat) -> dict[str, Any]:
    """Hyperparameters with their paths as absolute ones, where these can be told.

    A file of code (``names_code``) starts at the folder of the suite file that names it. A data file or folder
    (``names_files``) does so where it is there; else it is left as it is, and goes by the data folder. What the command
    line names starts at the current folder.
    """
    located_params = dict(params)
    for name in entry.traits.get("names_code", ()):
        if name in located_params:
            located_params[name] = _code(located_params[name], _folder(given.get(name)))
    for name in entry.traits.get("names_files", ()):
        value, folder = located_params.get(name), _folder(given.get(name))
        if isinstance(value, list):
            located_params[name] = [_data(text, folder) for text in value]
        elif value:
            located_params[name] = _data(value, folder)
    return located_params


def _folder(given: Decision | None) -> Path:
    return Path(given.value.place.file).parent if given and given.value.place.line else Path()


def _code(text: str, folder: Path) -> str:
    place, _, name = text.rpartition(":")
    return f"{_absolute(place, folder)}:{name}" if place.endswith(".py") else text


def _data(text: str, folder: Path) -> str:
    path = _absolute(text, folder)
    return path if os.path.exists(path) else text  # noqa: PTH110 - Path.exists raises for names that are too long


def _absolute(text: str, folder: Path) -> str:
    return os.path.normpath((folder / os.path.expanduser(text)).absolute())  # noqa: PTH111 - as it is without a home


def coerced(declared: HParam, value: Any) -> Any:
    """A value in its declared type.

    Raises:
        ValueError: it does not fit; the text says what was found and what is allowed.
    """
    if isinstance(value, list) and not declared.type.startswith("list["):
        several = "for several use 'tune' (selected on validation), 'matrix' (a row each) or, on an encoder, 'pool'"
        raise ValueError(f"'{declared.name}' is one {declared.type}, not a list; {several}")
    if isinstance(value, dict) and declared.type != "dict":
        raise ValueError(f"'{declared.name}': expected {declared.type}, found a table")
    try:
        return declared.coerce(value)
    except (ValueError, OverflowError, TypeError) as error:
        text = str(error) if isinstance(error, ValueError) else f"expected {declared.type}, found {describe(value)}"
        raise ValueError(f"'{declared.name}': {text}{_meant(declared, value)}") from None


def _meant(declared: HParam, value: Any) -> str:
    """A hint at what the writer probably meant."""
    if declared.type == "bool" and isinstance(value, str):
        return " (write true or false, without quotes)"
    if declared.choices and isinstance(value, str):
        return did_you_mean(value, map(str, declared.choices))
    if declared.type in ("int", "float") and isinstance(value, str):
        with suppress(ValueError):
            float(value)
            return " (a number in quotes is text)"
    return ""
