"""Content keys: canonical JSON, its SHA-256, the differences of two preimages, and digests of files. No torch."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from harness.errors import DataError

_EXACT = 2**53
FileMark = tuple[int, int, int, int]
DIGEST = re.compile(r"[0-9a-f]{64}")
"""A key, or the checksum of a file, as text."""
_SETTLED_NS = 2_000_000_000
_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_Where = tuple[Any, str | int] | None
"""The place of a value: the place of its container, and its name or position there."""


def canonical(value: Any) -> str:
    """Return the one text that stands for a value, whatever Python types carry it.

    Mappings are sorted by key, tuples and arrays are lists, sets are sorted lists, NumPy and torch scalars are
    plain numbers. A whole float is written as an integer (``1.0`` and ``1`` are one number, as in YAML and as
    ``==`` has it), ``-0.0`` as ``0``; booleans are never numbers.

    Raises:
        ValueError: NaN or an infinity, a key that is not text, or a type without a canonical form (a path, say,
            which must not decide a key); the text says where it stands.
    """
    return _ENCODE(_plain(value, None))


def digest(value: Any) -> str:
    """Return the SHA-256 (hex) of the canonical JSON of a value; see :func:`canonical`."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def _plain(value: Any, where: _Where) -> Any:
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) < _EXACT else float(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item, (where, position)) for position, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _plain(item, (where, name)) for name, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item, where) for item in value), key=_ENCODE)
    if hasattr(value, "tolist"):
        return _plain(value.tolist(), where)
    steps = ""
    while where is not None:
        where, step = where
        steps = f"[{step}]{steps}" if isinstance(step, int) else f".{step}{steps}"
    place = f" (at {steps.removeprefix('.')})" if steps else ""
    raise ValueError(f"a key cannot hold this {type(value).__name__}{place}: {value!r}")


def difference(old: Any, new: Any) -> list[str]:
    """Return the differences of two preimages, one line a leaf, for people.

    A mapping with ``kind`` and ``name`` is a component: its leaves are told under its name, and an absent value of its
    ``params`` is the default. Digests (64 hex digits) are not printed.

    Returns:
        lines such as ``train.epochs: 50 -> 25``, ``erm.penalty: default -> 1``, ``source of baseline erm changed``,
        ``inputs.dataset changed``; empty where nothing differs.
    """
    return list(_differences(json.loads(canonical(old)), json.loads(canonical(new)), (), "nothing"))


def _differences(old: Any, new: Any, path: tuple[str, ...], absent: str) -> Iterator[str]:
    """Yield a line for each difference; ``absent`` is the word for a value that is not there."""
    if canonical(old) == canonical(new):
        return
    place = ".".join(path) or "value"
    lists = isinstance(old, list) and isinstance(new, list)
    if lists and any(isinstance(item, dict) or _is_digest(item) for item in [*old, *new]):  # else told as a whole
        old, new = _labelled(old), _labelled(new)
    if not (isinstance(old, dict) and isinstance(new, dict)):
        shown = f": {_shown(old, absent)} -> {_shown(new, absent)}"
        yield place + (" changed" if _is_digest(old) and _is_digest(new) else shown)
        return
    component = _component(new)
    if component != _component(old):
        yield f"{place}: {' '.join(_component(old)) or 'other'} -> {' '.join(component) or 'other'}"
        return
    path = component[1:] or path
    for name in sorted(old.keys() | new.keys()):
        values = old.get(name, _ABSENT), new.get(name, _ABSENT)
        if component and name == "source" and values[0] != values[1]:
            yield f"source of {' '.join(component)} changed"
        elif component and name == "params":
            yield from _differences(*values, path, "default")
        else:
            yield from _differences(*values, (*path, name), absent)


_ABSENT = "\0absent"


def _component(value: dict[str, Any]) -> tuple[str, ...]:
    """Return kind and name of a component; nothing for another mapping."""
    kind, name = value.get("kind"), value.get("name")
    return (kind, name) if isinstance(kind, str) and isinstance(name, str) else ()


def _labelled(items: list[Any]) -> dict[str, Any]:
    """Turn a list into a mapping: files by their name, other items by their position from 1."""
    files = all(isinstance(item, dict) and "sha256" in item for item in items)
    return {str(item["name"]) if files else str(number): item for number, item in enumerate(items, 1)}


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def _shown(value: Any, absent: str) -> str:
    if value == _ABSENT:
        return absent
    if _is_digest(value):
        return f"{value[:8]}…"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def file_digest(path: Path, memo: MutableMapping[str, Any] | None = None) -> str:
    """Return the SHA-256 (hex) of a file's content.

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
    """Return size, times and inode, which change when a file is written; an :class:`OSError` passes through."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def hash_file(path: Path) -> str:
    """Return the SHA-256 (hex) of a file's content; an :class:`OSError` passes through."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
