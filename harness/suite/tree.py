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
        return Table(self.place, {k: v for k, v in self.entries.items() if k not in gone}, self.keys)


Tree = Leaf | Items | Table


def plain(tree: Tree) -> Any:
    """The value without places: scalars, lists and dictionaries."""
    if isinstance(tree, Leaf):
        return tree.value
    if isinstance(tree, Items):
        return [plain(item) for item in tree.items]
    return {name: plain(value) for name, value in tree.entries.items()}


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
        self._found: dict[tuple[int, int, int, str], Problem] = {}
        self._files: dict[str, int] = {}
        self._noted = 0

    def add(self, place: Place, message: str) -> None:
        """Note one fault, on one line whatever names it has; the same fault twice is reported once."""
        self._noted += 1
        message = shortened("\\n".join(message.splitlines()), MAX_MESSAGE)
        file = self._files.setdefault(place.file, len(self._files))
        self._found.setdefault((file, place.line, place.column, message), Problem(str(place), message))

    def __len__(self) -> int:
        # Repeats count, so that a copied fault is seen in each copy.
        return self._noted

    def check(self) -> None:
        """Raise what was found, by file and position.

        Raises:
            SuiteError: there is at least one problem.
        """
        found = [self._found[key] for key in sorted(self._found)]
        if len(found) > MAX_PROBLEMS:
            more = Problem(found[MAX_PROBLEMS].where, f"more than {MAX_PROBLEMS} faults; the rest is not shown")
            found = [*found[:MAX_PROBLEMS], more]
        if found:
            raise SuiteError(found)
