"""Components and settings against the catalog: names, hyperparameters, types."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from harness.component import KINDS
from harness.errors import did_you_mean
from harness.hparams import HParam, effective
from harness.registry.catalog import Catalog, Entry
from harness.suite.effects import Effects, Scope, Uses, Written
from harness.suite.settings import CALL, POSITIONAL, TRAIN, TrainSettings
from harness.suite.spec import MODEL, ComponentSpec, ModelSettings
from harness.suite.tree import Items, Leaf, Place, Problems, Table, Tree, describe, plain
from harness.suite.yaml import read_value

MAX_POOL = 1_000


@dataclass(frozen=True)
class Part:
    """A component of the suite, found and checked."""

    entry: Entry
    spec: ComponentSpec
    place: Place
    places: Mapping[str, Written] = field(default_factory=dict)
    """The places of its values, by name."""

    @property
    def values(self) -> dict[str, Any]:
        """All hyperparameters: the given values over the defaults."""
        return {**self.entry.defaults, **self.spec.params}


class Parts:
    """Checks components and settings, and notes what is wrong with them.

    ``lacking`` once a plugin of the suite did not load: a problem of its own, of which missing names are consequences.
    ``own`` names the suite's own file.
    """

    def __init__(self, catalog: Catalog, problems: Problems, own: str = "") -> None:
        self.catalog, self.problems, self.own = catalog, problems, own
        self.lacking = False

    def component(self, kind: str, table: Table) -> Part | None:
        """The component of a table in normal form, or None after a noted problem."""
        use = table.get("use")
        if not isinstance(use, Leaf):
            self.problems.add(table.place, f"this {kind} has no name; write {kind}: NAME or {{use: NAME, …}}")
            return None
        name, argument = _call(str(use.value))
        entry = self.find(kind, name, use.place)
        if entry is None:
            return None
        settled = table.get(POSITIONAL)
        if isinstance(settled, Leaf) and str(entry.traits.get("positional")) not in table:
            argument = str(settled.value)
        before = len(self.problems)
        table = table.without(["use", POSITIONAL])
        if argument is not None:
            table = self._positional(entry, argument, use.place, table)
        params = self._params(entry, table)
        if len(self.problems) > before:
            return None
        places = {key: (table.key(key), key) for key in params}
        return Part(entry, ComponentSpec(kind, name, located(entry, params, table)), use.place, places)

    def alone(self, kind: str, table: Table) -> Part | None:
        """Return :meth:`component` of a table that no other part of the suite changes; refuse values without effect."""
        part = self.component(kind, table)
        if part is None:
            return None
        uses, effects = Uses(), Effects(self.own)
        scope = Scope(f"{kind} '{part.spec.name}'", part.entry.hparams, [part.spec.params], part.places)
        scope.idle({}, {}, {}, uses)
        effects.add(uses)
        effects.refuse(self.problems, table, ())
        return replace(part, spec=replace(part.spec, params=effective(part.entry.hparams, part.spec.params)[0]))

    def find(self, kind: str, name: str, place: Place) -> Entry | None:
        """A component by name."""
        entry = self.catalog.find(kind, name)
        if entry is None:
            others = [other for other in KINDS if other != kind and self.catalog.find(other, name)]
            also = f"; '{name}' is the name of {_article(others[0])}" if others else ""
            text = self.catalog.unknown(kind, name, "a plugin of this suite did not load" if self.lacking else "")
            self.problems.add(place, text + also)
        return entry

    def _positional(self, entry: Entry, argument: str, place: Place, table: Table) -> Table:
        """The table with the value in parentheses under its name; faults are noted."""
        target = entry.traits.get("positional")
        if not target:
            self.problems.add(place, f"'{entry.name}' takes no value in parentheses; write {{use: {entry.name}, …}}")
        elif target in table:
            self.problems.add(table.key(target), f"'{target}' is given twice, here and in parentheses")
        else:
            value = read_value(argument, place, self.problems)
            return table if value is None else table.put(target, value, place)
        return table

    def _params(self, entry: Entry, table: Table) -> dict[str, Any]:
        """The given hyperparameters in their declared types, sorted by name."""
        declared = {name: self.hparam(entry, name, table.key(name)) for name in sorted(table)}
        return self.values({name: item for name, item in declared.items() if item is not None}, table)

    def hparam(self, entry: Entry, name: str, place: Place) -> HParam | None:
        """A component's hyperparameter by name."""
        declared = entry.hparams.get(name)
        if declared is None:
            known = ", ".join(entry.hparams) or "none"
            hint = did_you_mean(name, entry.hparams)
            self.problems.add(
                place, f"{entry.kind} '{entry.name}' has no hyperparameter '{name}'{hint}; it has: {known}"
            )
        return declared

    def value(self, declared: HParam, tree: Tree) -> tuple[bool, Any]:
        """Return True with the value in its declared type, or False after a noted problem."""
        try:
            return True, coerced(declared, plain(tree))
        except ValueError as error:
            self.problems.add(tree.place, str(error))
            return False, None

    def values(self, declared: Mapping[str, HParam], table: Table) -> dict[str, Any]:
        """Those values of a table that are declared, in their types and in the order of declaration."""
        typed = {name: self.value(item, table.entries[name]) for name, item in declared.items() if name in table}
        return {name: value for name, (fits, value) in typed.items() if fits}

    def train(self, table: Table) -> TrainSettings:
        """``train``."""
        return TrainSettings(**self.values(TRAIN, table))

    def model(self, table: Table) -> tuple[Part, ModelSettings] | None:
        """``model``: the backbone with flat and own hyperparameters, readout and head."""
        backbone = table.table("backbone")
        use = backbone.get("use")
        if not isinstance(use, Leaf):
            known = ", ".join(self.catalog.names("backbone"))
            self.problems.add(table.place, f"no backbone is named; there are: {known}")
            return None
        entry = self.catalog.find("backbone", _call(str(use.value))[0])
        for name in table.without(["backbone", *MODEL]):
            if entry is None or name in entry.hparams:
                backbone = backbone.put(name, table.entries[name], table.key(name))
            else:
                allowed = [*MODEL, "backbone", *entry.hparams]
                what = f"unknown key '{name}' in 'model' with backbone '{entry.name}'{did_you_mean(name, allowed)}"
                self.problems.add(table.key(name), f"{what}; allowed: {', '.join(allowed)}")
        part = self.component("backbone", backbone)
        own = self.values(MODEL, table)
        return None if part is None else (part, ModelSettings(part.spec, **own))

    def pool(self, part: Part, pool: Table) -> tuple[ComponentSpec, ...] | None:
        """The encoder's architectures: every combination of the pooled lists, in canonical order."""
        before = len(self.problems)
        axes: dict[str, list[Any]] = {}
        for name in sorted(pool):
            values = self.axis(self.hparam(part.entry, name, pool.key(name)), pool.entries[name])
            distinct = [value for at, value in enumerate(values) if value not in values[:at]]
            axes[name] = sorted(distinct, key=lambda value: (value is None, value))
        size = prod(map(len, axes.values()))
        if size > MAX_POOL:
            self.problems.add(pool.place, f"the pool has {size:,} architectures; at most {MAX_POOL:,} are allowed")
        if len(self.problems) > before:
            return None
        points = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
        return tuple(replace(part.spec, params=dict(sorted({**part.spec.params, **point}.items()))) for point in points)

    def axis(self, declared: HParam | None, tree: Tree) -> tuple[Any, ...]:
        """Return the values of a list in their declared type; faults are noted."""
        if declared is None or not isinstance(tree, Items):
            return ()
        values = [self.value(declared, item) for item in tree.items]
        return tuple(value for fits, value in values if fits)


def located(entry: Entry, params: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Hyperparameters with their paths as absolute ones, where these can be told.

    A file of code (``names_code``) starts at the folder of the suite file that names it. A data file or folder
    (``names_files``) does so where it is there; else it is left as it is, and goes by the data folder. What the command
    line names starts at the current folder.
    """
    located_params = dict(params)
    for name in entry.traits.get("names_code", ()):
        if name in located_params:
            located_params[name] = _code(located_params[name], _folder(table, name))
    for name in entry.traits.get("names_files", ()):
        value, folder = located_params.get(name), _folder(table, name)
        if isinstance(value, list):
            located_params[name] = [_data(text, folder) for text in value]
        elif value:
            located_params[name] = _data(value, folder)
    return located_params


def _folder(table: Table, name: str) -> Path:
    tree = table.get(name)
    place = Place("") if tree is None else tree.place
    return Path(place.file).parent if place.line else Path()


def _code(text: str, folder: Path) -> str:
    place, _, name = text.rpartition(":")
    return f"{_absolute(place, folder)}:{name}" if place.endswith(".py") else text


def _data(text: str, folder: Path) -> str:
    path = _absolute(text, folder)
    return path if os.path.exists(path) else text  # noqa: PTH110 - Path.exists raises for names that are too long


def _absolute(text: str, folder: Path) -> str:
    return os.path.normpath((folder / os.path.expanduser(text)).absolute())  # noqa: PTH111 - as it is without a home


def _call(text: str) -> tuple[str, str | None]:
    match = CALL.match(text.strip())
    return (match[1], match[2]) if match else (text, None)


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


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
    if declared.type == "bool" and str(value).lower() in ("yes", "no", "on", "off", "true", "false"):
        return " (write true or false, without quotes)"
    if declared.choices and isinstance(value, str):
        return did_you_mean(value, [choice for choice in declared.choices if isinstance(choice, str)])
    if declared.type.startswith("list[") and value is not None and not isinstance(value, list):
        return f" (write [{value}])"
    if declared.type in ("int", "float") and isinstance(value, str) and _is_number(value):
        return " (a number in quotes is text)"
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
