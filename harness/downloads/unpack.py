"""Unpack a zip, tar or gzip file: nothing outside its target, no links, and not more than is plausible."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from harness.downloads.files import HINT, require_room, safe_parts
from harness.errors import DataError
from harness.safe_io import writing

MOST_FILES = 100_000
MOST_BYTES = 64 * 10**9
_GROWTH = 200
_SMALL = 10**9
_MOST_AT_ONCE = 1 << 24
_PACKED: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ", lzma.open),
)
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
            with zipfile.ZipFile(archive) as opened:
                _write(_zip_members(opened), folder, target, most)
            return
        with _open(archive) as content:
            try:
                tar = tarfile.TarFile(fileobj=_Bounded(content, most))  # type: ignore[arg-type]
            except tarfile.ReadError:
                raise DataError("what was fetched is neither a zip nor a tar archive") from None
            with tar:
                _write(_tar_members(tar), folder, target, most)


def gunzip(packed: Path, target: Path) -> None:
    """Write the content of a gzip file to a file; the caller removes what is there after an error.

    Raises:
        DataError: not a gzip file, damaged, or too big.
        FileError: the disk is full or cannot be written.
    """
    with _archive_errors(), gzip.open(packed) as content:
        _copy(_Bounded(content, _plausible(packed)), target)


def _plausible(packed: Path) -> int:
    """Return the bytes that a file may unpack to."""
    return min(max(_SMALL, _GROWTH * packed.stat().st_size), MOST_BYTES)


@contextmanager
def _archive_errors() -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise DataError(f"the archive is damaged: {error or type(error).__name__}") from None
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or an unknown compression
        raise DataError(f"the archive cannot be read: {error}") from None


class _Bounded:
    """The content of a packed file, of which no more is read than is plausible, at once or in all.

    The tar format lets a header say how long it is, and Python reads a header as a whole.
    """

    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._most = stream, most
        self.tell = stream.tell

    def read(self, size: int = -1) -> Any:
        """Read bytes."""
        if not 0 <= size <= _MOST_AT_ONCE:
            raise DataError("the archive has a header of an implausible size")
        data = self._stream.read(size)
        self._require_plausible(self._stream.tell())
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> Any:
        """Go to a place."""
        self._require_plausible(offset)
        return self._stream.seek(offset, whence)

    def _require_plausible(self, place: int) -> None:
        if place > self._most:
            raise DataError("the archive would unpack to more than is plausible")


def _open(packed: Path) -> Any:
    """Open a file, unpacked as it is read where it is compressed."""
    with packed.open("rb") as stream:
        start = stream.read(6)
    return next((opener for magic, opener in _PACKED if start.startswith(magic)), io.open)(packed, "rb")


def _zip_members(opened: zipfile.ZipFile) -> Iterator[_Member]:
    for info in opened.infolist():
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise DataError(f"the archive holds a link or a device: {info.filename!r}")
        if not info.is_dir() or safe_parts(info.filename) is None:
            yield info.filename, info.file_size, partial(opened.open, info)


def _tar_members(opened: tarfile.TarFile) -> Iterator[_Member]:
    for info in opened:
        if not info.isfile() and not info.isdir():
            raise DataError(f"the archive holds a link or a device: {info.name!r}")
        if info.isfile() or safe_parts(info.name) is None:
            yield info.name, info.size, partial(opened.extractfile, info)


def _write(members: Iterable[_Member], folder: str, target: Path, most: int) -> None:
    inside = safe_parts(folder) or ()
    chosen: dict[tuple[str, ...], _Member] = {}
    others: set[str] = set()
    total = 0
    for count, member in enumerate(members):
        name, size, _ = member
        parts = safe_parts(name)
        if size < 0:
            raise DataError(f"the archive says that {name!r} has {size} bytes")
        if parts is None:
            raise DataError(
                f"the archive holds a path that leads out of its folder, or that not every system has: {name!r}; "
                "nothing is unpacked"
            )
        if count >= MOST_FILES:
            raise DataError(f"the archive holds more than {MOST_FILES:,} files, which is not plausible")
        if len(parts) <= len(inside) or parts[: len(inside)] != inside or parts[0] == "__MACOSX":
            others.add(parts[0] if parts else name)
            continue
        if parts in chosen:
            raise DataError(f"the archive holds {name!r} twice")
        chosen[parts] = member
        total += size
    if not chosen:
        listed = ", ".join(sorted(others)) or "nothing"
        raise DataError(f"the archive has no files in '{folder or '/'}'; it holds: {listed}")
    if total > most:
        raise DataError(f"the archive would unpack to {total} bytes, which is not plausible")
    with writing(target, HINT):
        target.mkdir(parents=True)
    require_room(target, total)
    for parts, (_, _, content) in chosen.items():
        with content() as source:
            _copy(source, target.joinpath(*parts[len(inside) :]))


def _copy(source: Any, target: Path) -> None:
    """Copy a stream to a new file, and tell an error of the disk from one of the archive."""
    with writing(target, HINT):
        target.parent.mkdir(parents=True, exist_ok=True)
        stream = target.open("xb")
    with stream:
        while block := source.read(1 << 20):
            with writing(target, HINT):
                stream.write(block)
