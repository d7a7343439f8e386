"""Content keys: canonical JSON, its SHA-256, what differs between two preimages, and digests of files. No torch."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Iterator, Mapping, MutableMapping
from json.encoder import encode_basestring_ascii as _quoted
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.errors import DataError

_EXACT = 2**53
FileMark = tuple[int, int, int, int]
DIGEST = re.compile(r"[0-9a-f]{64}")
"""A key, or the checksum of a file, as text."""
_SETTLED_NS = 2_000_000_000
_CHUNK = 1 << 20
_WORDS = MappingProxyType({None: "null", True: "true", False: "false"})
_Where = tuple[Any, str | int] | None
"""Where a value stands: the place of what holds it, and its name or position there."""


def canonical(value: Any) -> str:
    """The one text that stands for a value, whatever Python types carry it.

    Mappings are sorted by key, tuples and arrays are lists, sets are sorted lists, NumPy and torch scalars are
    plain numbers. A whole float is written as an integer (``1.0`` and ``1`` are one number, as in YAML and as
    ``==`` has it), ``-0.0`` as ``0``; booleans are never numbers.

    Raises:
        ValueError: NaN or an infinity, a key that is not text, or a type without a canonical form (a path, say,
            which must not decide a key); the text says where it stands.
    """
    return _text(value, None)


def digest(value: Any) -> str:
    """SHA-256 (hex) of the canonical JSON of a value; see :func:`canonical`."""
    return sha256(canonical(value))


def sha256(text: str) -> str:
    """Return the SHA-256 (hex) of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _text(value: Any, where: _Where) -> str:
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is int:
        return repr(value)
    if value is None or kind is bool:
        return _WORDS[value]
    if kind is dict or isinstance(value, Mapping):
        names = sorted([name if type(name) is str else _name(name, where) for name in value])
        return "{" + ",".join([f"{_quoted(name)}:{_text(value[name], (where, name))}" for name in names]) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        texts = [_text(item, (where, position)) for position, item in enumerate(value)]
        return "[" + ",".join(sorted(texts) if isinstance(value, (set, frozenset)) else texts) + "]"
    return _unusual(value, where)


def _unusual(value: Any, where: _Where) -> str:
    """Floats, arrays, and subclasses of plain types."""
    if hasattr(value, "tolist"):
        return _text(value.tolist(), where)
    if isinstance(value, float):
        return _number(value, where)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        return int.__repr__(value)
    raise ValueError(f"a key cannot hold a {type(value).__name__}{_at(where)}: {value!r}")


def _number(value: float, where: _Where) -> str:
    if not math.isfinite(value):
        raise ValueError(f"a key cannot hold {value!r}{_at(where)}")
    return repr(int(value)) if value.is_integer() and abs(value) < _EXACT else float.__repr__(value)


def _name(name: Any, where: _Where) -> str:
    if not isinstance(name, str):
        raise ValueError(f"a key cannot hold a mapping with the name {name!r}{_at(where)}: names are text")
    return name


def _at(where: _Where) -> str:
    text = ""
    while where is not None:
        where, step = where
        text = f"[{step}]{text}" if isinstance(step, int) else f".{step}{text}"
    return f" (at {text.removeprefix('.')})" if text else ""


def difference(old: Any, new: Any) -> list[str]:
    """What differs between two preimages, one line a leaf, for people.

    A mapping with ``kind`` and ``name`` is a component: its leaves are told under its name, an absent value of
    its ``params`` is the default, its ``source`` is a digest. Other digests (64 hex digits) are not printed.

    Returns:
        lines such as ``train.epochs: 50 -> 25``, ``erm.penalty: default -> 1``, ``source of baseline erm changed``,
        ``file BACE.csv changed``, ``input dataset changed``; empty where nothing differs.
    """
    return list(_differences(json.loads(canonical(old)), json.loads(canonical(new)), (), default=False))


def _differences(old: Any, new: Any, path: tuple[str, ...], *, default: bool) -> Iterator[str]:
    if canonical(old) == canonical(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _mapping_differences(old, new, path)
    elif isinstance(old, list) and isinstance(new, list) and any(_is_part(item) for item in [*old, *new]):
        before, after = _labelled(old), _labelled(new)
        if canonical(before) == canonical(after):
            yield f"{_dotted(path)}: another order"
        yield from _mapping_differences(before, after, path)
    elif _is_digest(old) and _is_digest(new):
        yield _digest_line(path)
    else:
        yield f"{_dotted(path)}: {_shown(old, default=default)} -> {_shown(new, default=default)}"


def _is_part(item: Any) -> bool:
    """Whether a list's item is told by itself rather than with the whole list."""
    return isinstance(item, dict) or _is_digest(item)


def _labelled(items: list[Any]) -> dict[str, Any]:
    """A list as a mapping: files by their name, other items by their position from 1."""
    named = {item["name"]: item for item in items if isinstance(item, dict) and set(item) == {"name", "sha256"}}
    return named if len(named) == len(items) else {str(number): item for number, item in enumerate(items, 1)}


def _mapping_differences(old: dict[str, Any], new: dict[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    identity = _component(new)
    if identity != _component(old):
        named = [" ".join(item) if item else "other" for item in (_component(old), identity)]
        yield f"{_dotted(path)}: {named[0]} -> {named[1]}"
        return
    if identity:
        path = (identity[1],)
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, _ABSENT), new.get(name, _ABSENT)
        if identity and name == "source" and canonical(before) != canonical(after):
            yield f"source of {' '.join(identity)} changed"
        elif identity and name == "params" and _ABSENT not in (before, after):
            for param in sorted(before.keys() | after.keys()):
                pair = before.get(param, _ABSENT), after.get(param, _ABSENT)
                yield from _differences(*pair, (*path, param), default=True)
        else:
            yield from _differences(before, after, (*path, name), default=False)


_ABSENT = "\0absent"


def _component(value: dict[str, Any]) -> tuple[str, str] | None:
    kind, name = value.get("kind"), value.get("name")
    return (kind, name) if isinstance(kind, str) and isinstance(name, str) else None


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def _digest_line(path: tuple[str, ...]) -> str:
    path = path[:-1] if path and path[-1] == "sha256" else path
    for folder, word in (("files", "file"), ("inputs", "input")):
        if folder in path[:-1]:
            return f"{word} {_dotted(path[path.index(folder) + 1 :])} changed"
    if path and path[-1] == "source":
        return f"source of {_dotted(path[:-1])} changed" if path[:-1] else "source changed"
    return f"{_dotted(path)} changed"


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path) or "value"


def _shown(value: Any, *, default: bool) -> str:
    if value == _ABSENT:
        return "default" if default else "nothing"
    if _is_digest(value):
        return f"{value[:8]}…"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def file_digest(path: Path, memo: MutableMapping[str, Any] | None = None) -> str:
    """SHA-256 (hex) of a file's content.

    Args:
        path: the file.
        memo: digests of earlier calls by absolute path (see :class:`harness.store.store.Store`), used while size,
            modification and change time and inode are the same. A file younger than two seconds is not
            remembered: another write could leave the same times.

    Raises:
        DataError: there is no such file, or it cannot be read.
    """
    name = os.path.abspath(path)  # noqa: PTH100 - keeps symbolic links, which may be pointed elsewhere
    try:
        mark = file_mark(path)
        known = memo.get(name) if memo is not None else None
        if isinstance(known, list) and tuple(known[:-1]) == mark:
            return str(known[-1])
        result = hash_file(path)
    except FileNotFoundError:
        raise DataError(f"there is no file {name}") from None
    except OSError as error:
        raise DataError(f"cannot read {name}: {error.strerror or error}") from None
    if memo is not None and time.time_ns() - max(mark[1:3]) > _SETTLED_NS:
        memo[name] = [*mark, result]
    return result


def file_mark(path: Path) -> FileMark:
    """What is another number, size or time apart, after a file was written; an :class:`OSError` passes through."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def hash_file(path: Path) -> str:
    """SHA-256 (hex) of a file's content; an :class:`OSError` passes through."""
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_CHUNK):
            total.update(block)
    return total.hexdigest()
