"""Components and settings against the catalog: names, hyperparameters, types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from harness.component import KINDS
from harness.errors import did_you_mean
from harness.hparams import HParam, effective
from harness.registry.catalog import Catalog, Entry
from harness.suite.effects import Effects, Scope, Uses, Written
from harness.suite.once import Once
from harness.suite.paths import located
from harness.suite.settings import CALL, POSITIONAL, SELECT, TRAIN, SelectSettings, TrainSettings
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
    """Where its values stand, by name."""

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
        self._specs: dict[tuple[str, str, str], ComponentSpec] = {}
        self._arguments: dict[tuple[str, Place], Tree] = {}
        self._parts: dict[tuple[int, Place], Part] = {}
        self.once = Once(problems)

    def spec(self, kind: str, name: str, params: Mapping[str, Any]) -> ComponentSpec:
        """The component with values; equal ones are one object, so that what follows from it is worked out once."""
        return self._specs.setdefault((kind, name, repr(params)), ComponentSpec(kind, name, params))

    def component(self, kind: str, table: Table) -> Part | None:
        """The component of a table in normal form, or None after a noted problem."""
        return self.once.of(lambda: self._component(kind, table), kind, table)

    def _component(self, kind: str, table: Table) -> Part | None:
        use = table.get("use")
        if not isinstance(use, Leaf):
            self.problems.add(table.place, f"this {kind} has no name; write {kind}: NAME or {{use: NAME, …}}")
            return None
        name, argument = _call(str(use.value))
        entry = self.find(kind, name, use.place)
        if entry is None:
            return None
        settled = table.get(POSITIONAL)
        if isinstance(settled, Leaf):
            table = table.without([POSITIONAL])
            if str(entry.traits.get("positional")) not in table:
                argument = str(settled.value)
        if argument is not None:
            filled = self._positional(entry, argument, use.place, table)
            if filled is None:
                return None
            table = filled
        before = len(self.problems)
        params = self.params(entry, table.without(["use"]))
        if len(self.problems) > before:
            return None
        spec = self.spec(kind, name, located(entry, params, table))
        places = {key: (table.key(key), key) for key in params}
        return self._parts.setdefault((id(spec), use.place), Part(entry, spec, use.place, places))

    def alone(self, kind: str, table: Table) -> Part | None:
        """As :meth:`component`, of one that no other value of the suite reaches: values without effect are refused."""
        part = self.component(kind, table)
        if part is None:
            return None
        uses, effects = Uses(), Effects(self.own)
        scope = Scope(f"{kind} '{part.spec.name}'", part.entry.hparams, [part.spec.params], part.places)
        scope.idle({}, {}, {}, uses)
        effects.add(uses)
        effects.refuse(self.problems, table, ())
        return replace(part, spec=self.spec(kind, part.spec.name, effective(part.entry.hparams, part.spec.params)[0]))

    def find(self, kind: str, name: str, place: Place) -> Entry | None:
        """A component by name."""
        entry = self.catalog.find(kind, name)
        if entry is None:
            others = [other for other in KINDS if other != kind and self.catalog.find(other, name)]
            also = f"; '{name}' is the name of {_article(others[0])}" if others else ""
            text = self.catalog.unknown(kind, name, "a plugin of this suite did not load" if self.lacking else "")
            self.problems.add(place, text + also)
        return entry

    def _positional(self, entry: Entry, argument: str, place: Place, table: Table) -> Table | None:
        target = entry.traits.get("positional")
        if not target:
            self.problems.add(place, f"'{entry.name}' takes no value in parentheses; write {{use: {entry.name}, …}}")
            return None
        if target in table:
            self.problems.add(table.key(target), f"'{target}' is given twice, here and in parentheses")
            return None
        if (argument, place) not in self._arguments:
            read = read_value(argument, place, self.problems)
            if read is None:
                return None
            self._arguments[argument, place] = read
        return table.put(target, self._arguments[argument, place], place)

    def params(self, entry: Entry, table: Table) -> dict[str, Any]:
        """The given hyperparameters in their declared types, sorted by name."""
        found = {}
        for name in sorted(table):
            declared = self.hparam(entry, name, table.key(name))
            if declared is not None:
                ok, value = self.value(declared, table.entries[name])
                if ok:
                    found[name] = value
        return found

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
        """Whether a value fits, and the value in its declared type."""
        try:
            return True, coerced(declared, plain(tree))
        except ValueError as error:
            self.problems.add(tree.place, str(error))
            return False, None

    def settings(self, declared: Mapping[str, HParam], table: Table) -> dict[str, Any]:
        """Typed values of a settings table whose keys are known."""
        found = {}
        for name, tree in table.entries.items():
            if name in declared:
                ok, value = self.value(declared[name], tree)
                if ok:
                    found[name] = value
        return found

    def train(self, table: Table) -> TrainSettings:
        """``train``."""
        return self.once.of(lambda: self.once.one(TrainSettings(**self.settings(TRAIN, table))), "train", table)

    def select(self, table: Table) -> SelectSettings:
        """``select``."""
        return self.once.of(lambda: SelectSettings(**self.settings(SELECT, table)), "select", table)

    def model(self, table: Table) -> tuple[Part, ModelSettings] | None:
        """``model``: the backbone with flat and own hyperparameters, readout and head."""
        return self.once.of(lambda: self._model(table), "model", table)

    def _model(self, table: Table) -> tuple[Part, ModelSettings] | None:
        backbone = table.table("backbone")
        if "use" not in backbone:
            self.problems.add(
                table.place, f"no backbone is named; there are: {', '.join(self.catalog.names('backbone'))}"
            )
            return None
        flat = table.without(["backbone", *MODEL])
        for name in flat:
            backbone = backbone.put(name, flat.entries[name], flat.key(name))
        use = backbone.entries["use"]
        assert isinstance(use, Leaf)
        entry = self.catalog.find("backbone", _call(str(use.value))[0])
        if entry is not None:
            for name in [name for name in flat if name not in entry.hparams]:
                allowed = [*MODEL, "backbone", *entry.hparams]
                hint = did_you_mean(name, allowed)
                message = (
                    f"unknown key '{name}' in 'model' with backbone '{entry.name}'{hint}; allowed: {', '.join(allowed)}"
                )
                self.problems.add(flat.key(name), message)
                backbone = backbone.without([name])
        part = self.component("backbone", backbone)
        own = self.settings(MODEL, table)
        return None if part is None else (part, self.once.one(ModelSettings(part.spec, **own)))

    def pool(self, part: Part, pool: Table) -> tuple[ComponentSpec, ...] | None:
        """The encoder's architectures: every combination of the pooled lists, in canonical order."""
        axes: list[tuple[str, list[Any]]] = []
        for name in sorted(pool):
            values = self.several(pool.entries[name], f"'{name}' in 'pool'")
            declared = self.hparam(part.entry, name, pool.key(name))
            if values is None or declared is None:
                return None
            coerced = [self.value(declared, value) for value in values]
            if not all(ok for ok, _ in coerced):
                return None
            axes.append((name, _unique(sorted((value for _, value in coerced), key=lambda v: (v is None, v)))))
        size = 1
        for _, options in axes:
            size *= len(options)
        if size > MAX_POOL:
            self.problems.add(pool.place, f"the pool has {size:,} architectures; at most {MAX_POOL:,} are allowed")
            return None
        names = [name for name, _ in axes]
        points = product(*(options for _, options in axes))
        return tuple(
            ComponentSpec(
                part.spec.kind, part.spec.name, _sorted({**part.spec.params, **dict(zip(names, point, strict=True))})
            )
            for point in points
        )

    def several(self, tree: Tree, what: str) -> tuple[Tree, ...] | None:
        """The values of a list that must not be empty."""
        if isinstance(tree, Items) and tree.items:
            return tree.items
        found = "an empty list" if isinstance(tree, Items) else describe(tree)
        self.problems.add(tree.place, f"{what} takes a list of values, found {found}")
        return None


def _call(text: str) -> tuple[str, str | None]:
    match = CALL.match(text.strip())
    return (match[1], match[2]) if match else (text, None)


def _sorted(params: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(params.items()))


def _unique(values: Iterable[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if value not in kept:
            kept.append(value)
    return kept


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
