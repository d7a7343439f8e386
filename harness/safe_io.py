"""Read and show what others wrote (suites, stores, downloads) within bounds, and report disk errors. No torch."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from harness.errors import DiskFullError, FileError, bounded

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Parsed = TypeVar("Parsed")
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""System errors that mean that there is no room left."""
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,120}")
"""The name of a run's folder; it leads nowhere else."""
FILE_NAME = re.compile(r"[^./\\:\x00-\x1f\x7f][^/\\:\x00-\x1f\x7f]{0,199}")
"""The name of a file in an artifact, on every system."""
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
"""A key or the id of a cell, as a part of a path."""
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@contextmanager
def writing(path: Path, hint: str = "") -> Iterator[None]:
    """Turn an :class:`OSError` of a block that writes into a message that names the path.

    Args:
        path: the file or folder that the block writes.
        hint: advice that is added to the message of an error other than a full disk.

    Raises:
        DiskFullError: there is no room left.
        FileError: the path cannot be written.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if isinstance(error, FileExistsError):
            reason = f"{error.filename} is a file, and not a folder"
        if error.errno in DISK_FULL:
            raise DiskFullError(f"the disk is full: cannot write {path}") from error
        raise FileError(f"cannot write {path}: {reason}{hint}") from error


def no_file(path: Path) -> str:
    """Say why a path is no file that can be read (``not found``, ``is a folder``); empty where it is one."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "not found"
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        return f"cannot be read ({error.strerror or error})"
    return "" if stat.S_ISREG(mode) else "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"


def no_plugin_file(path: Path) -> str:
    """Say why a path can be no plugin file; empty where it can."""
    named = path.suffix == ".py" and "." not in path.stem
    return no_file(path) or ("" if named else "is no Python file with one dot in its name, such as method.py")


def visible(text: str) -> str:
    r"""Write out as ``\u001b`` what would steer a terminal or turn the reading direction.

    Line breaks and tabs stay. Characters are written out in the way of JSON, so that JSON stays what it was.
    """
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Write a CSV file: mappings and lists as JSON, None as an empty field."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(map(_csv_field, row) for row in rows)
    return stream.getvalue()


def _csv_field(value: Any) -> Any:
    if isinstance(value, (Mapping, list, tuple)):
        return json_text(value, indent=None).strip()
    if isinstance(value, bool):
        return str(value).lower()
    return value


def json_text(data: Any, indent: int | None = 1) -> str:
    """Write strict JSON that ends with a line break: dataclasses by field, a non-finite number as null."""
    try:
        text = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError:
        finite = json.loads(json.dumps(data, default=_plain), parse_constant=lambda _: None)
        text = json.dumps(finite, indent=indent, ensure_ascii=False, allow_nan=False)
    return text + "\n"


def _plain(value: Any) -> dict[str, Any]:
    """Return a dataclass or a read-only mapping as a dictionary.

    Raises:
        TypeError: it is neither, such as a number of NumPy's.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if not is_dataclass(value):
        raise TypeError(f"expected plain Python values, found {type(value).__name__} {bounded(str(value), 80)}")
    return {item.name: getattr(value, item.name) for item in fields(value)}


def parse_json(text: str) -> Any:
    """Read strict JSON.

    Raises:
        ValueError: malformed text, a bare NaN or Infinity, or brackets nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def yaml_text(data: Mapping[str, Any]) -> str:
    """Return a table as YAML, in its order."""
    import yaml

    return yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True)


def parse_yaml(text: str) -> Any:
    """Read plain YAML that may be another's: a suite in a run's folder, a plugin's deviations.

    Raises:
        ValueError: malformed, or with foreign tags.
    """
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(f"not plain YAML: {error}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: to a temporary hidden file beside it, which is then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.urandom(8).hex()}")  # not by tempfile, whose files no one else may read
    try:
        with part.open("x", encoding="utf-8", newline="") as stream:
            stream.write(text)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_output(path: Path, text: str) -> None:
    """Write a file that a user names: whole or not at all, to where a symbolic link leads; a pipe or device as it is.

    Raises:
        FileError: it cannot be written.
    """
    with writing(path):
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8", newline="")
        else:
            write_text(path.resolve(), text)


def shown(value: Any) -> str:
    """Return a value for a message: short, and without what would steer a terminal."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def parse_json_as(form: type[Parsed], text: str) -> Parsed:
    """Read strict JSON as a dataclass, or a list of them, whose values all have the types of their fields.

    Raises:
        ValueError: malformed text, or the place of a value that is of another type.
    """
    from pydantic import ValidationError

    parse_json(text)  # pydantic would take NaN
    kind: Any = form
    try:
        parsed: Parsed = _adapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise ValueError(f"{place}: {fault['msg']}" if place else fault["msg"]) from None
    return parsed


@cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(form)


_UNITS = ("B", "kB", "MB", "GB", "TB")


def size_text(count: float) -> str:
    """Format bytes as ``1.5 MB``: three significant digits, in decimal units, as ``--memory 1500M`` is written."""
    unit = 0
    while count >= 999.5 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.0f} {_UNITS[unit]}" if count >= 999.5 else f"{count:.3g} {_UNITS[unit]}"


def file_name(label: str, *, longest: int = 100, otherwise: str = "unnamed") -> str:
    """Reduce a label to letters, digits, ``.``, ``_`` and single ``-``, without dashes at its ends.

    Args:
        label: any text.
        longest: characters kept.
        otherwise: for a label of which nothing is left.
    """
    text = "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in label)
    return "-".join(filter(None, text.split("-")))[:longest].strip("-.") or otherwise


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """Return label -> a file name of its own, on file systems too that ignore case."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        stem, number = file_name(label), 1
        name = stem
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.casefold())
        names[label] = name
    return names
