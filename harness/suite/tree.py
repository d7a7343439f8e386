"""YAML values that remember where they stand in their file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.errors import Problem, SuiteError

MAX_PROBLEMS = 200
MAX_MESSAGE = 5_000
"""Characters of one message: a suite's own names stand in it."""
Scalar = None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class Place:
    """A position: ``file:line:column`` (counted from 1), or only a name such as ``--epochs 5``."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar."""

    value: Scalar
    place: Place


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Tree, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping with text keys. Never changed in place: the methods return new tables."""

    place: Place
    entries: Mapping[str, Tree] = field(default_factory=dict)
    keys: Mapping[str, Place] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, name: str) -> Tree | None:
        """The value of a key, or None."""
        return self.entries.get(name)

    def table(self, name: str) -> Table:
        """The table under a key, or an empty one."""
        value = self.entries.get(name)
        return value if isinstance(value, Table) else Table(self.place)

    def key(self, name: str) -> Place:
        """Return the place of a key."""
        return self.keys.get(name, self.place)

    def put(self, name: str, value: Tree, place: Place | None = None) -> Table:
        """A copy with one key set."""
        where = place or self.keys.get(name, value.place)
        return Table(self.place, {**self.entries, name: value}, {**self.keys, name: where})

    def without(self, names: Iterable[str]) -> Table:
        """A copy without these keys."""
        gone = set(names)
        if not gone.intersection(self.entries):
            return self
        return Table(self.place, {k: v for k, v in self.entries.items() if k not in gone}, self.keys)

    def only(self, names: Iterable[str]) -> Table:
        """A copy with these keys alone."""
        kept = set(names)
        return self.without(name for name in self.entries if name not in kept)


Tree = Leaf | Items | Table


def plain(tree: Tree) -> Any:
    """The value without places: scalars, lists and dictionaries."""
    if isinstance(tree, Leaf):
        return tree.value
    if isinstance(tree, Items):
        return [plain(item) for item in tree.items]
    return {name: plain(value) for name, value in tree.entries.items()}


def planted(value: Any, place: Place) -> Tree:
    """The inverse of :func:`plain`, with one place for everything."""
    if isinstance(value, Mapping):
        entries = {str(name): planted(item, place) for name, item in value.items()}
        return Table(place, entries, dict.fromkeys(entries, place))
    if isinstance(value, (list, tuple)):
        return Items(tuple(planted(item, place) for item in value), place)
    return Leaf(value, place)


FAULTY = "!"
"""A key that no file can give: this row has a noted fault, so what it lacks must not be noted as well."""


def mark_faulty(table: Table) -> Table:
    """The table with the mark."""
    return table.put(FAULTY, Leaf(True, table.place))


def describe(value: Any) -> str:
    """A plain value, or one with places, as messages say what was found."""
    value = plain(value) if isinstance(value, (Leaf, Items, Table)) else value
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else "a list"
    return "nothing" if value is None else shortened(repr(value))


def shortened(text: str, most: int = 200) -> str:
    """The text, cut where it is longer than anybody would read."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


class Problems:
    """Collects the faults of a suite, so that all are reported at once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, int, str], Problem] = {}
        self._files: dict[str, int] = {}
        self._noted = 0

    def add(self, place: Place, message: str) -> None:
        """Note one fault; the same fault twice is reported once.

        Raises:
            SuiteError: there are more than :data:`MAX_PROBLEMS`.
        """
        self._noted += 1
        message = shortened(message, MAX_MESSAGE)
        self._files.setdefault(place.file, len(self._files))
        key = (place.file, place.line, place.column, message)
        self._found.setdefault(key, Problem(str(place), message))
        if len(self._found) > MAX_PROBLEMS:
            del self._found[key]
            raise SuiteError(
                [*self._ordered(), Problem(str(place), f"more than {MAX_PROBLEMS} faults; the rest is not shown")]
            )

    def __bool__(self) -> bool:
        return bool(self._found)

    def __len__(self) -> int:
        # Repeats count, so that a copied fault is seen in each copy.
        return self._noted

    def check(self) -> None:
        """Raise what was found, by file and position.

        Raises:
            SuiteError: there is at least one problem.
        """
        if self._found:
            raise SuiteError(self._ordered())

    def _ordered(self) -> list[Problem]:
        return [self._found[key] for key in sorted(self._found, key=lambda key: (self._files[key[0]], *key[1:]))]
