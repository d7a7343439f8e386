"""A strict YAML reader: places for every key and value, no duplicate keys, no tags, bounded aliases.

Scalars follow the core schema of YAML 1.2 rather than PyYAML's 1.1: ``1e-3`` is a number, ``yes`` and ``12:30``
are text, ``010`` is ten. The merge key ``<<`` of YAML 1.1 works.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from harness.suite.tree import Items, Leaf, Place, Problems, Scalar, Table, Tree

MAX_BYTES = 1_000_000
MAX_NODES = 100_000
MAX_DEPTH = 50
MAX_DIGITS = 1000

_TAG = "tag:yaml.org,2002:"
_CORE = (
    ("null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("int", re.compile(r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"), list("-+0123456789")),
    (
        "float",
        re.compile(
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        list("-+.0123456789"),
    ),
)


class _Refused(Exception):
    """The text is YAML, but not of the kind that a suite may use."""

    def __init__(self, mark: Any, message: str) -> None:
        super().__init__(message)
        self.mark, self.message = mark, message


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for name, pattern, starts in _CORE:
        for start in starts:
            table.setdefault(start, []).append((_TAG + name, pattern))
    return table


class _Loader(yaml.SafeLoader):
    """SafeLoader up to the composed nodes, with the resolvers of YAML 1.2 and bounds on size and depth."""

    yaml_implicit_resolvers = _resolvers()

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._count = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH or self._count > MAX_NODES:
            raise _Refused(self.peek_event().start_mark, _too_big(self._depth))  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _too_big(depth: int) -> str:
    if depth > MAX_DEPTH:
        return f"nested more than {MAX_DEPTH} levels deep"
    return f"more than {MAX_NODES:,} values after aliases are expanded"


class _Reader:
    """Turns composed nodes into trees."""

    def __init__(self, file: str, problems: Problems, fixed: Place | None) -> None:
        self.file, self.problems, self.fixed = file, problems, fixed
        self.count = 0
        self.open: list[int] = []

    def place(self, mark: Any) -> Place:
        if self.fixed is not None or mark is None:
            return self.fixed or Place(self.file, 1, 1)
        return Place(self.file, mark.line + 1, mark.column + 1)

    def tree(self, node: Any) -> Tree:
        self.count += 1
        if self.count > MAX_NODES or len(self.open) > MAX_DEPTH:
            raise _Refused(node.start_mark, _too_big(len(self.open)))
        if id(node) in self.open:
            raise _Refused(node.start_mark, "an alias that contains itself")
        if isinstance(node, yaml.ScalarNode):
            return Leaf(self.scalar(node), self.place(node.start_mark))
        if node.tag not in (_TAG + "seq", _TAG + "map"):
            raise _Refused(node.start_mark, _no_tag(node.tag))
        self.open.append(id(node))
        result: Tree
        if isinstance(node, yaml.SequenceNode):
            result = Items(tuple(self.tree(item) for item in node.value), self.place(node.start_mark))
        else:
            result = self.table(node)
        self.open.pop()
        return result

    def scalar(self, node: Any) -> Scalar:
        kind, text = node.tag.removeprefix(_TAG), node.value
        try:
            return _convert(kind, text)
        except ValueError:
            raise _Refused(node.start_mark, f"not a valid {kind}: {text[:40]!r}") from None
        except KeyError:
            raise _Refused(node.start_mark, _no_tag(node.tag)) from None

    def table(self, node: Any) -> Table:
        entries: dict[str, Tree] = {}
        keys: dict[str, Place] = {}
        merged: list[Table] = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _Refused(key.start_mark, "a key must be plain text")
            where = self.place(key.start_mark)
            if key.value == "<<" and key.style is None:
                merged += self.merge_key(value)
            elif key.value in entries:
                self.problems.add(where, f"duplicate key '{key.value}' (first given at {keys[key.value]})")
            else:
                keys[key.value] = where
                entries[key.value] = self.tree(value)
        for table in merged:
            for name, tree in table.entries.items():
                if name not in entries:
                    entries[name], keys[name] = tree, table.keys[name]
        return Table(self.place(node.start_mark), entries, keys)

    def merge_key(self, node: Any) -> list[Table]:
        tree = self.tree(node)
        tables = tree.items if isinstance(tree, Items) else (tree,)
        if not all(isinstance(table, Table) for table in tables):
            raise _Refused(node.start_mark, "'<<' takes a table or a list of tables")
        return [table for table in tables if isinstance(table, Table)]


def _convert(kind: str, text: str) -> Scalar:
    match kind:
        case "str":
            return str(text)
        case "null":
            return None
        case "bool":
            if text.lower() not in ("true", "false"):
                raise ValueError(text)
            return text.lower() == "true"
        case "int":
            if len(text) > MAX_DIGITS:
                raise ValueError(text)
            return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
        case "float":
            return float(re.sub(r"\.(inf|nan)$", r"\1", text.lower()))
    raise KeyError(kind)


def _no_tag(tag: str) -> str:
    return f"the tag '{tag.replace(_TAG, '!!')}' is not allowed; suites are plain YAML"


def read_file(path: Path, problems: Problems, *, name: str | None = None) -> Tree | None:
    """The content of a YAML file, or None where it is empty, unreadable or not YAML (noted in ``problems``).

    Args:
        path: the file.
        problems: receives every fault, each with its place.
        name: how the file is called in messages; the path by default.
    """
    label = name or str(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            problems.add(Place(label), f"the file has {size:,} bytes; a suite may have {MAX_BYTES:,}")
            return None
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problems.add(Place(label), f"not a text file in UTF-8 (byte {error.start})")
        return None
    except OSError as error:
        problems.add(Place(label), f"cannot read the file: {error.strerror or error}")
        return None
    return read_text(text, label, problems)


def read_text(text: str, name: str, problems: Problems, *, fixed: Place | None = None) -> Tree | None:
    """Like :func:`read_file`, from text; ``fixed`` is a place to give to every value."""
    reader = _Reader(name, problems, fixed)
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        return None if node is None else reader.tree(node)
    except _Refused as error:
        problems.add(reader.place(error.mark), error.message)
    except yaml.MarkedYAMLError as error:
        problems.add(reader.place(error.problem_mark or error.context_mark), _syntax(error))
    except yaml.reader.ReaderError as error:
        position = int(error.position)
        before = text[:position]
        where = Place(name, before.count("\n") + 1, position - before.rfind("\n"))
        problems.add(fixed or where, f"a character that YAML does not allow: U+{ord(text[position]):04X}")
    finally:
        if loader is not None:
            loader.dispose()
    return None


def read_value(text: str, place: Place, problems: Problems) -> Tree | None:
    """The one value that a whole text is, such as what follows ``--set KEY=``; None where it is faulty (noted).

    YAML takes `` #`` for the start of a comment and would leave the rest out. Plain text is then taken as it stands;
    anything else with such a part is a fault.
    """
    try:
        tokens = list(yaml.scan(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError:
        tokens = []
    content = [token for token in tokens if not isinstance(token, _FRAME)]
    ends = [0, *(token.end_mark.index for token in tokens)]
    gaps = [text[end : token.start_mark.index] for end, token in zip(ends, tokens, strict=False)]
    if not any(isinstance(token, _LEFT_OUT) for token in tokens) and not "".join(gaps).strip():
        before = len(problems)
        value = read_text(text, str(place), problems, fixed=place)
        return Leaf(None, place) if value is None and len(problems) == before else value
    if not content or (len(content) == 1 and isinstance(content[0], yaml.ScalarToken) and content[0].plain):
        return Leaf(text.strip(), place)
    problems.add(place, "YAML would leave out a part of the value (behind ' #' is a comment): put text in quotes")
    return None


_LEFT_OUT = (yaml.DirectiveToken, yaml.DocumentStartToken, yaml.DocumentEndToken, yaml.AnchorToken)
_FRAME = (*_LEFT_OUT, yaml.StreamStartToken, yaml.StreamEndToken)


def _syntax(error: yaml.MarkedYAMLError) -> str:
    context = f" ({error.context})" if error.context else ""
    hint = "; indent with spaces, not tabs" if "\\t" in str(error.problem) else ""
    return f"not valid YAML: {error.problem}{context}{hint}"
