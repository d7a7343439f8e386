"""Writing below the data folder: where a download may lie, and disk faults as messages."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import DataError, UserError
from harness.safe_io import size_text

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DRIVE = re.compile(r"[A-Za-z]:")


class NoRoomError(UserError):
    """The disk is full, or what is to come would not fit."""


def safe_parts(name: str) -> tuple[str, ...] | None:
    """A relative path with ``/`` as its parts, or None where it is absolute, leads upwards or is not portable.

    What is not printable is not portable either, and could steer the terminal that shows it.
    """
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    unsafe = name.startswith("/") or "\\" in name or not name.isprintable() or _DRIVE.match(name)
    return None if unsafe or ".." in parts else parts


def below(root: Path, name: str) -> Path:
    """The place that a download names, below the data folder.

    Raises:
        DataError: the name leads elsewhere.
    """
    parts = safe_parts(name)
    if not parts:
        raise DataError(f"a dataset wants its file at '{name}', which is not below the data folder; nothing is fetched")
    return root.joinpath(*parts)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a fault of the disk into a message that names the path.

    Raises:
        NoRoomError: the disk is full.
        UserError: the place cannot be written.
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _FULL:
            raise NoRoomError(
                f"cannot write {path}: {why}; what has arrived is kept and fetch goes on from there"
            ) from None
        raise UserError(f"cannot write {path}: {why} (--data-dir or BENCH_DATA name another data folder)") from None


def require_room(folder: Path, needed: int) -> None:
    """Refuse what will not fit, before it is begun.

    Raises:
        NoRoomError: fewer bytes are free than needed.
    """
    with writing(folder):
        free = shutil.disk_usage(folder).free
    if needed > free:
        raise NoRoomError(
            f"no room in {folder}: {size_text(needed)} needed, {size_text(free)} free "
            "(--data-dir or BENCH_DATA name another data folder)"
        )
