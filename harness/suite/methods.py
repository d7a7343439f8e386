"""Turn the methods of a file into rows of the table (``like``, ``bundle``, ``matrix``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from harness.errors import did_you_mean, listed
from harness.suite.files import read_shipped
from harness.suite.layers import Decision, Flat, Flattener, Row, over
from harness.suite.settings import FAULTY, KIND_OF, PARTS, PIPELINE, ROLES, is_label
from harness.suite.tree import Items, Place, Table, Tree, plain

MAX_ROWS = 10_000
MAX_COPIES = 200


@dataclass(frozen=True)
class Method:
    """One row of the table before it meets a dataset.

    Attributes:
        label: the row's name.
        family: the name in the file, which several rows of one matrix share.
        flat: its decisions, without ``like``, ``bundle`` and ``matrix``.
        place: where the method's name stands.
        swept: the paths of its matrix.
    """

    label: str
    family: str
    flat: Flat
    place: Place
    swept: tuple[str, ...] = ()


def resolve_methods(methods: Mapping[str, Row], flattener: Flattener) -> list[Method]:
    """All rows, in the order of the file."""
    copier, problems = _Copier(methods, flattener), flattener.problems
    rows: dict[str, Method] = {}
    for name, written in methods.items():
        flat = copier.resolve(name)
        fault = "" if FAULTY in flat else _fault(flat)
        if fault:
            problems.add(written.place, f"method '{name}' {fault}")
        for row in () if fault else _expand(name, flat, written.place, flattener):
            if row.label in rows:
                problems.add(row.place, f"two rows are called '{row.label}' (the other at {rows[row.label].place})")
            elif row.swept and not is_label(row.label):
                text = "the matrix gives a row a name of more than 200 characters, or of some that cannot be printed; "
                problems.add(row.place, f"{text}write such a row as a method of its own, with 'like'")
            elif len(rows) == MAX_ROWS:
                problems.add(row.place, f"the matrices give more than {MAX_ROWS:,} rows")
                return list(rows.values())
            else:
                rows[row.label] = row
    return list(rows.values())


class _Copier:
    """Follows ``like`` and ``bundle``, each method once."""

    def __init__(self, methods: Mapping[str, Row], flattener: Flattener) -> None:
        self.methods, self.flattener, self.problems = methods, flattener, flattener.problems
        self.done: dict[str, Flat] = {}

    def resolve(self, name: str, above: tuple[str, ...] = ()) -> Flat:
        """The method over what it copies, marked where that is not to be had; ``above`` are those that copy it."""
        if name not in self.done:
            row, base = self.methods[name], Flat()
            if row.like:
                other, path = str(row.like.value), (*above, name)
                fault = self._no_copy(other, path)
                if fault:
                    self.problems.add(row.like.place, fault)
                base = {FAULTY: Decision(row.like, row.place)} if fault else self.resolve(other, path)
            elif row.bundle:
                base = self.flattener.row("method", read_shipped("bundles", row.bundle, self.problems))
            self.done[name] = over(base, row.flat)
        return self.done[name]

    def _no_copy(self, other: str, path: tuple[str, ...]) -> str:
        if other in path:
            return f"'like' goes round in a circle: {' → '.join([*path[path.index(other) :], other])}"
        if other not in self.methods:
            hint = f"{did_you_mean(other, self.methods)}; there are: {listed(self.methods)}"
            return f"'like' names no method of this suite: '{other}'{hint}"
        return f"'like' copies more than {MAX_COPIES} methods" if len(path) > MAX_COPIES else ""


def _fault(flat: Flat) -> str:
    """Return what a method lacks, or has too much of."""
    heads = {path.partition(".")[0] for path, one in flat.items() if one.way != "tune" or not path.startswith("envs.")}
    present = [role for role in ROLES if role in heads]
    if not present:
        return f"is empty: give 'baseline', or {', '.join(PIPELINE)}"
    if "baseline" in present and len(present) > 1:
        return f"has a baseline and also {', '.join(present[1:])}; it is one or the other"
    if "baseline" not in present and len(present) < len(PIPELINE):
        return f"lacks {', '.join(role for role in PIPELINE if role not in present)}"
    part = next((part for part in PARTS if part in heads and part not in flat), None)
    return f"does not name its {part}; write {part}: NAME or {{use: NAME, …}}" if part else ""


def _expand(name: str, flat: Flat, place: Place, flattener: Flattener) -> list[Method]:
    """The rows of a method's matrix, the first axis outermost; the method itself without one."""
    axes = {path: one.value.items for path, one in flat.items() if one.way == "matrix" and isinstance(one.value, Items)}
    known = [*axes, *map(_last, axes)]
    wanted = next((word for word in _PLACEHOLDER.findall(name) if word not in known), None)
    if wanted is not None:
        text = f"'{{{wanted}}}' in a method's name is no axis of its matrix{did_you_mean(wanted, known)}"
        flattener.problems.add(place, text)
        return []
    size = prod(map(len, axes.values()))
    if size > MAX_ROWS:
        flattener.problems.add(place, f"the matrix of '{name}' gives {size:,} rows; at most {MAX_ROWS:,} are allowed")
        return []
    bare = {path: one for path, one in flat.items() if path not in axes}
    rows = []
    for point in product(*axes.values()):
        chosen = dict(zip(axes, point, strict=True))
        row = bare
        for path, value in chosen.items():
            one = {path: Decision(value, value.place)}
            decided = flattener.component(path, value) if path in KIND_OF else one
            for twice in decided.keys() & (axes.keys() - {path}):
                flattener.problems.add(value.place, f"'{twice}' is decided twice (here and in the matrix); keep one")
            row = row | decided
        rows.append(Method(_label(name, chosen, axes), name, row, place, tuple(chosen)))
    return rows


_PLACEHOLDER = re.compile(r"\{([\w.-]+)\}")


def _label(name: str, chosen: Mapping[str, Tree], axes: Mapping[str, tuple[Tree, ...]]) -> str:
    """The row's name: placeholders filled, the other axes appended."""
    suffix = []
    texts: dict[str, str] = {}
    for path, value in chosen.items():
        component = path in KIND_OF
        names = [_named(option) for option in axes[path]] if component else []
        text = _named(value) if component and len(names) == len(set(names)) else value_text(plain(value))
        texts |= {path: text, _last(path): text}
        if f"{{{path}}}" not in name and f"{{{_last(path)}}}" not in name:
            suffix.append(text if component else f"{_last(path)}={text}")
    return ", ".join([_PLACEHOLDER.sub(lambda found: texts[found[1]], name), *suffix])


def _named(component: Tree) -> str:
    return str(plain(component.entries["use"] if isinstance(component, Table) else component))


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def value_text(value: Any) -> str:
    """A value for people: short numbers, components as ``name(layers=2)``."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    if isinstance(value, float):
        return short if float(short := f"{value:g}") == value else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(value_text(item) for item in value)}]"
    if isinstance(value, dict):
        rest = ", ".join(f"{key}={value_text(item)}" for key, item in value.items() if key != "use")
        return f"{value.get('use', '')}({rest})" if rest else str(value.get("use", ""))
    return str(value)
