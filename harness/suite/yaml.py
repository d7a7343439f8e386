"""A strict YAML reader: places for every key and value, no duplicate keys, no tags, bounded aliases.

Scalars follow the core schema of YAML 1.2 rather than PyYAML's 1.1: ``1e-3`` is a number, ``yes`` and ``12:30``
are text, ``010`` is ten.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from harness.suite.tree import Items, Leaf, Place, Problems, Scalar, Table, Tree

MAX_BYTES = 1_000_000
MAX_NODES = 100_000
STORED = 16
"""How many times as much a run's resolved suite may hold: a matrix makes many rows of a few lines."""
MAX_DEPTH = 50
MAX_DIGITS = 1000

_CONSTANTS: dict[str, Scalar] = {"": None, "~": None}
_CONSTANTS |= {
    form(text): value
    for text, value in (("null", None), ("true", True), ("false", False))
    for form in (str, str.upper, str.title)
}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))")


class _Refused(Exception):
    """The text is YAML, but not of the kind that a suite may use."""

    def __init__(self, mark: Any, message: str) -> None:
        super().__init__(message)
        self.mark, self.message = mark, message


class _Reader:
    """Turns the events of a YAML text into a tree."""

    def __init__(self, text: str, file: str, problems: Problems, fixed: Place | None, most: int) -> None:
        self.source: Any = yaml.SafeLoader(text)
        self.file, self.problems, self.fixed, self.most = file, problems, fixed, most
        self.anchors: dict[str, tuple[Tree, int]] = {}
        self.count = 0

    def place(self, mark: Any) -> Place:
        return self.fixed or Place(self.file, mark.line + 1, mark.column + 1)

    def document(self) -> Tree | None:
        self.source.get_event()
        if self.source.check_event(yaml.StreamEndEvent):
            return None
        self.source.get_event()
        tree = self.tree(1)
        self.source.get_event()
        if not self.source.check_event(yaml.StreamEndEvent):
            raise _Refused(self.source.peek_event().start_mark, "not valid YAML: a second document begins here")
        return tree

    def tree(self, depth: int) -> Tree:
        event, before = self.source.get_event(), self.count
        self._counted(event, 1, depth)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise _Refused(event.start_mark, f"the alias '*{event.anchor}' names nothing that ends above it")
            tree, size = self.anchors[event.anchor]
            self._counted(event, size, depth)
            return tree
        if event.tag is not None:
            raise _Refused(event.start_mark, f"the tag '{event.tag}' is not allowed; suites are plain YAML")
        place = self.place(event.start_mark)
        if isinstance(event, yaml.ScalarEvent):
            tree = Leaf(_scalar(event) if event.implicit[0] else event.value, place)
        elif isinstance(event, yaml.SequenceStartEvent):
            tree = Items(tuple(self.items(depth)), place)
        else:
            tree = self.table(place, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = tree, self.count - before
        return tree

    def items(self, depth: int) -> list[Tree]:
        items = []
        while not self.source.check_event(yaml.SequenceEndEvent):
            items.append(self.tree(depth + 1))
        self.source.get_event()
        return items

    def table(self, place: Place, depth: int) -> Table:
        entries: dict[str, Tree] = {}
        keys: dict[str, Place] = {}
        while not self.source.check_event(yaml.MappingEndEvent):
            key = self.source.get_event()
            if not isinstance(key, yaml.ScalarEvent):
                raise _Refused(key.start_mark, "a key must be plain text")
            where, value = self.place(key.start_mark), self.tree(depth + 1)
            if key.value in entries:
                self.problems.add(where, f"duplicate key '{key.value}' (first given at {keys[key.value]})")
            else:
                keys[key.value], entries[key.value] = where, value
        self.source.get_event()
        return Table(place, entries, keys)

    def _counted(self, event: Any, size: int, depth: int) -> None:
        self.count += size
        if depth > MAX_DEPTH:
            raise _Refused(event.start_mark, f"nested more than {MAX_DEPTH} levels deep")
        if self.count > self.most:
            raise _Refused(event.start_mark, f"more than {self.most:,} values after aliases are expanded")


def _scalar(event: Any) -> Scalar:
    text: str = event.value
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INT.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise _Refused(event.start_mark, f"not a valid int: {text[:40]!r}…")
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
    return float(re.sub(r"\.(?=[in])", "", text.lower())) if _FLOAT.fullmatch(text) else text


def read_file(path: Path, problems: Problems, *, name: str | None = None) -> Tree | None:
    """The content of a YAML file, or None where it is empty, unreadable or not YAML (noted in ``problems``).

    Messages call the file by its ``name``, the path by default.
    """
    label, times = name or str(path), STORED if path.with_name("run.json").is_file() else 1
    try:
        size = path.stat().st_size
        if size <= times * MAX_BYTES:
            data = path.read_bytes()
            return read_text(data.decode("utf-8-sig"), label, problems, most=times * MAX_NODES)
        problems.add(Place(label), f"the file has {size:,} bytes; a suite may have {times * MAX_BYTES:,}")
    except UnicodeDecodeError as error:
        lines = data[: error.start].split(b"\n")
        problems.add(Place(label, len(lines), len(lines[-1]) + 1), "not a text file in UTF-8")
    except OSError as error:
        problems.add(Place(label), f"cannot read the file: {error.strerror or error}")
    return None


def read_text(
    text: str, name: str, problems: Problems, *, fixed: Place | None = None, most: int = MAX_NODES
) -> Tree | None:
    """Like :func:`read_file`, from text of at most so many values; ``fixed`` is a place to give to every value."""
    try:
        reader = _Reader(text, name, problems, fixed, most)
    except yaml.reader.ReaderError as error:
        lines = text[: int(error.position)].split("\n")
        place = fixed or Place(name, len(lines), len(lines[-1]) + 1)
        problems.add(place, f"a character that YAML does not allow: U+{ord(text[int(error.position)]):04X}")
        return None
    try:
        return reader.document()
    except _Refused as error:
        problems.add(reader.place(error.mark), error.message)
    except yaml.MarkedYAMLError as error:
        context = f" ({error.context})" if error.context else ""
        hint = "; indent with spaces, not tabs" if "\\t" in str(error.problem) else ""
        place = reader.place(error.problem_mark or error.context_mark)
        problems.add(place, f"not valid YAML: {error.problem}{context}{hint}")
    return None


def read_value(text: str, place: Place, problems: Problems) -> Tree | None:
    """The value that follows ``--set KEY=``; None where it is faulty (noted).

    Text in which YAML would see a comment or the mark of a document is taken as it stands.
    """
    if re.match(r"\s*(---|\.\.\.)|[^\"'\[{]*(^|\s)#", text):
        return Leaf(text.strip(), place)
    before = len(problems)
    value = read_text(text, str(place), problems, fixed=place)
    return Leaf(None, place) if value is None and len(problems) == before else value


def read_pair(text: str, place: Place, problems: Problems) -> tuple[str, Tree] | None:
    """Key and value of an option's ``KEY=VALUE``, or None after a noted problem."""
    key, equals, written = text.partition("=")
    if not equals or not all(key.strip().split(".")):
        problems.add(place, "expected KEY=VALUE with a dotted key, such as train.lr=1e-3")
        return None
    value = read_value(written, place, problems)
    return None if value is None else (key.strip(), value)
