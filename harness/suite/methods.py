"""Turn the methods of a file into rows of the table (``like``, ``bundle``, ``matrix``), and write them down again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from harness.data import Declaration
from harness.errors import did_you_mean
from harness.hparams import effective
from harness.suite.components import Part
from harness.suite.effects import Effects, Written
from harness.suite.files import read_bundle
from harness.suite.normal import decisions, drop, merge, over_method
from harness.suite.settings import PARTS, PIPELINE, ROLES, SECTIONS
from harness.suite.spec import ComponentSpec
from harness.suite.tree import FAULTY, Items, Leaf, Place, Problems, Table, Tree, mark_faulty, plain

MAX_ROWS = 10_000


@dataclass(frozen=True)
class Method:
    """One row of the table before it meets a dataset.

    Attributes:
        label: the row's name.
        family: the name in the file, which several rows of one matrix share.
        tree: the complete method in normal form, without ``like``, ``bundle`` and ``matrix``.
        place: where the method's name stands.
        swept: the values of its matrix, as its parts have them.
    """

    label: str
    family: str
    tree: Table
    place: Place
    swept: tuple[Written, ...] = ()


def resolve_methods(methods: Table, problems: Problems) -> list[Method]:
    """All rows, in the order of the file."""
    copier = _Copier(methods, problems)
    rows: list[Method] = []
    seen: dict[str, Place] = {}
    for name in methods:
        tree = copier.resolve(name)
        if not _complete(tree, name, methods.key(name), problems):
            continue
        for row in _expand(name, tree, methods.key(name), problems):
            if row.label in seen:
                problems.add(row.place, f"two rows are called '{row.label}' (the other at {seen[row.label]})")
                continue
            seen[row.label] = row.place
            rows.append(row)
            if len(rows) > MAX_ROWS:
                problems.add(row.place, f"the matrices give more than {MAX_ROWS:,} rows")
                return rows[:MAX_ROWS]
    return rows


class _Copier:
    """Follows ``like`` and ``bundle``, each method once."""

    def __init__(self, methods: Table, problems: Problems) -> None:
        self.methods, self.problems = methods, problems
        self.done: dict[str, Table] = {}
        self.stranded: set[str] = set()

    def resolve(self, start: str) -> Table:
        """The method with what it copies laid under it, marked where that is not to be had."""
        for name in reversed(self._chain(start)):
            own = self.methods.table(name)
            like, bundle = own.get("like"), own.get("bundle")
            base = Table(own.place)
            if name in self.stranded:
                base = mark_faulty(base)
            elif isinstance(like, Leaf):
                base = self.done[str(like.value)]
            elif isinstance(bundle, Leaf):
                base = read_bundle(bundle, self.problems)
            self.done[name] = over_method(base, own.without(["like", "bundle"]))
        return self.done[start]

    def _chain(self, start: str) -> list[str]:
        """The method and those it copies, nearest first, as far as they are not yet known."""
        chain = [start] if start not in self.done else []
        while chain:
            like = self.methods.table(chain[-1]).get("like")
            if not isinstance(like, Leaf) or str(like.value) in self.done:
                break
            other = str(like.value)
            if other in self.methods and other not in chain:
                chain.append(other)
                continue
            if other in chain:
                cycle = " → ".join([*chain[chain.index(other) :], other])
                message = f"'like' goes round in a circle: {cycle}"
            else:
                hint = did_you_mean(other, self.methods)
                known = ", ".join(self.methods)
                message = f"'like' names no method of this suite: '{other}'{hint}; there are: {known}"
            self.problems.add(like.place, message)
            self.stranded.add(chain[-1])
            break
        return chain


def _complete(tree: Table, name: str, place: Place, problems: Problems) -> bool:
    """Return True if a method is complete and decides each path in one way only.

    A method already known to be faulty passes, so that the rest of it is still looked at.
    """
    if FAULTY in tree:
        return True
    before = len(problems)
    swept = tree.table("matrix")
    present = [role for role in ROLES if role in tree or role in swept]
    if not present:
        problems.add(place, f"method '{name}' is empty: give 'baseline', or {', '.join(PIPELINE)}")
    elif "baseline" in present and len(present) > 1:
        problems.add(place, f"method '{name}' has a baseline and also {', '.join(present[1:])}; it is one or the other")
    elif "baseline" not in present:
        missing = [role for role in PIPELINE if role not in present]
        if missing:
            problems.add(place, f"method '{name}' lacks {', '.join(missing)}")
    for part in PARTS:
        if part in tree and part not in swept and "use" not in tree.table(part):
            message = f"{part} of method '{name}' has no name; write {part}: NAME or {{use: NAME, …}}"
            problems.add(tree.table(part).place, message)
        if part in swept and "use" in tree.table(part):
            problems.add(swept.key(part), f"'{part}' of method '{name}' is both given and in 'matrix'; keep one")
    for path, ways in decisions(tree).items():
        if len(ways) > 1:
            kind = ways[-1]
            message = f"'{path}' of method '{name}' is decided twice ({' and '.join(ways)}); keep one"
            problems.add(tree.table(kind).key(path) if kind in ("tune", "matrix") else tree.place, message)
    return len(problems) == before


def _expand(name: str, tree: Table, place: Place, problems: Problems) -> list[Method]:
    """The rows of a method's matrix, the first axis outermost; the method itself without one."""
    matrix = tree.table("matrix")
    bare = tree.without(["matrix"])
    if not _placeholders_known(name, list(matrix), place, problems):
        return []
    if not matrix:
        return [Method(name, name, bare, place)]
    axes = {path: values.items for path, values in matrix.entries.items() if isinstance(values, Items)}
    size = prod(map(len, axes.values()))
    if size > MAX_ROWS:
        problems.add(matrix.place, f"the matrix of '{name}' gives {size:,} rows; at most {MAX_ROWS:,} are allowed")
        return []
    named = {path: _distinct_names(options) for path, options in axes.items()}
    rows = []
    for point in product(*axes.values()):
        chosen = dict(zip(axes, point, strict=True))
        row = bare
        for path, value in chosen.items():
            row = _put(row, path, value)
        swept = tuple((value.place, _last(path)) for path, value in chosen.items())
        rows.append(Method(_label(name, chosen, named), name, row, place, swept))
    return rows


def _put(method: Table, path: str, value: Tree) -> Table:
    """The method with one matrix value; a component keeps what the method tunes on its part."""
    if path in PARTS and isinstance(value, Table):
        return method.put(path, merge(method.table(path).without(value), value), value.place)
    return put_path(method, path, value)


def put_path(method: Table, path: str, value: Tree) -> Table:
    """The method with a value at a dotted path, in place of any other decision on it."""
    head, _, name = path.partition(".")
    method = drop(method, path)
    return method.put(head, method.table(head).put(name, value, value.place), method.key(head))


_PLACEHOLDER = re.compile(r"\{([\w.-]+)\}")


def _placeholders_known(name: str, paths: list[str], place: Place, problems: Problems) -> bool:
    known = [*paths, *(_last(path) for path in paths)]
    for wanted in _PLACEHOLDER.findall(name):
        if wanted not in known:
            hint = did_you_mean(wanted, known)
            problems.add(place, f"'{{{wanted}}}' in a method's name is no axis of its matrix{hint}")
            return False
    return True


def _distinct_names(options: tuple[Tree, ...]) -> bool:
    """Return True if the values of an axis are components with different names."""
    names = [plain(option).get("use") for option in options if isinstance(option, Table)]
    return len(names) == len(options) == len(set(names)) and None not in names


def _label(name: str, chosen: Mapping[str, Tree], named: Mapping[str, bool]) -> str:
    """The row's name: placeholders filled, the other axes appended."""
    suffix = []
    texts: dict[str, str] = {}
    for path, value in chosen.items():
        text = str(plain(value)["use"]) if named[path] else value_text(plain(value))
        texts |= {path: text, _last(path): text}
        if f"{{{path}}}" not in name and f"{{{_last(path)}}}" not in name:
            suffix.append(text if isinstance(value, Table) else f"{_last(path)}={text}")
    return ", ".join([_PLACEHOLDER.sub(lambda found: texts[found[1]], name), *suffix])


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


# Checked against the catalog


@dataclass(frozen=True)
class CheckedDataset:
    """A dataset of the suite.

    Attributes:
        label: the column's name.
        part: the component.
        declared: what it says of itself.
        settings: ``model``, ``train`` and ``select`` of its rows before the method's own.
        envs: its ``envs`` table, empty where it gives none; ``environment`` likewise, as a component.
    """

    label: str
    part: Part
    declared: Declaration
    settings: Table
    envs: Table
    environment: Part | None


@dataclass(frozen=True)
class CheckedMethod:
    """A method of the suite: its row, its parts by role, its encoder's pool, the environment it names."""

    row: Method
    parts: Mapping[str, Part]
    pool: tuple[ComponentSpec, ...]
    environment: Part | None

    @property
    def learner(self) -> Part:
        """The component that trains the classifier."""
        return self.parts.get("baseline") or self.parts["decorrelator"]


def written_dataset(dataset: CheckedDataset, effects: Effects) -> dict[str, Any]:
    """A dataset with all its settings, so that no protocol is needed to read it, but those without effect."""
    settings = effects.kept(dataset.settings, f"datasets.{dataset.label}")
    sections = {name: settings.table(name) for name in SECTIONS}
    tree = {**_written(dataset.part), **{name: plain(value) for name, value in sections.items() if value}}
    if dataset.environment is not None:
        tree["envs"] = _written(dataset.environment)
    return tree


def written_method(method: CheckedMethod, effects: Effects) -> dict[str, Any]:
    """A method without copies, matrices, and values without effect."""
    tree = effects.kept(method.row.tree, f"methods.{method.row.label}")
    empty = [name for name in tree if isinstance(tree.get(name), Table) and not tree.table(name)]
    written: dict[str, Any] = plain(tree.without(empty))
    return {**written, "envs": _written(method.environment)} if method.environment and "envs" in tree else written


def _written(part: Part) -> dict[str, Any]:
    return {"use": part.spec.name, **effective(part.entry.hparams, part.spec.params)[0]}
