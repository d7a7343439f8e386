"""Unpack a zip, tar or gzip file: nothing outside its target, no links, and not more than is plausible."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PureWindowsPath
from typing import Any

from harness.downloads.files import HINT
from harness.errors import DataError
from harness.safe_io import writing

_GROWTH = 200
_SMALL = 10**9
_Member = tuple[str, int, Callable[[], Any]]
"""A regular file of an archive: its name, size and content."""


def unpack(archive: Path, folder: str, target: Path) -> None:
    """Write the files below a folder of an archive to a new folder.

    Args:
        archive: a zip, or a tar that may be compressed.
        folder: the archive's folder to take, ``""`` for all of it.
        target: an absent folder; the caller removes what is in it after an error.

    Raises:
        DataError: not an archive, damaged, unsafe, too big, or without that folder.
        FileError: the disk is full or cannot be written.
    """
    most = _plausible(archive)
    with _archive_errors():
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                infos = [info for info in zipped.infolist() if not info.is_dir()]
                _write([(i.filename, i.file_size, partial(zipped.open, i)) for i in infos], folder, target, most)
        else:
            with tarfile.open(archive) as tar:
                members = [info for info in tar if not info.isdir()]
                if wrong := next((info.name for info in members if not info.isfile()), None):
                    raise DataError(f"the archive holds a link or a device: {wrong!r}")
                _write([(i.name, i.size, partial(tar.extractfile, i)) for i in members], folder, target, most)


def gunzip(packed: Path, target: Path) -> None:
    """Write the content of a gzip file to a file; the caller removes what is there after an error.

    Raises:
        DataError: not a gzip file, damaged, or too big.
        FileError: the disk is full or cannot be written.
    """
    with _archive_errors(), gzip.open(packed) as content:
        _copy(content, target, _plausible(packed))


def _plausible(packed: Path) -> int:
    """Return the bytes that a file may unpack to."""
    return max(_SMALL, _GROWTH * packed.stat().st_size)


@contextmanager
def _archive_errors() -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise DataError(f"the archive is damaged: {error or type(error).__name__}") from None
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or an unknown compression
        raise DataError(f"the archive cannot be read: {error}") from None


def _write(members: list[_Member], folder: str, target: Path, most: int) -> None:
    inside = _safe_parts(folder)
    named = [(_safe_parts(name), size, content) for name, size, content in members]
    chosen = [(parts[len(inside) :], content) for parts, _, content in named if parts[: len(inside)] == inside]
    if not chosen:
        held = ", ".join(sorted({parts[0] for parts, _, _ in named})) or "nothing"
        raise DataError(f"the archive has no files in '{folder or '/'}'; it holds: {held}")
    if sum(size for _, size, _ in named) > most:
        raise DataError("the archive would unpack to more than is plausible")
    with writing(target, HINT):
        target.mkdir(parents=True)
    for parts, content in chosen:
        with content() as source:
            _copy(source, target.joinpath(*parts), most)


def _safe_parts(name: str) -> tuple[str, ...]:
    """Split a relative path at ``/``, on every system."""
    path = PureWindowsPath(name)  # its separators and drives are more than POSIX has
    if path.anchor or ".." in path.parts:
        raise DataError(f"the archive holds a path that leads out of its folder: {name!r}; nothing is unpacked")
    return path.parts


def _copy(source: Any, target: Path, most: int) -> None:
    """Copy a stream to a new file, and tell an error of the disk from one of the archive."""
    with writing(target, HINT):
        target.parent.mkdir(parents=True, exist_ok=True)
        stream = target.open("xb")
    with stream:
        while block := source.read(1 << 20):
            most -= len(block)
            if most < 0:
                raise DataError("the archive would unpack to more than is plausible")
            with writing(target, HINT):
                stream.write(block)
