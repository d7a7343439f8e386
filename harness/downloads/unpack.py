"""Unpacking a zip or tar archive into a new folder: nothing outside of it, no links, and not more than it may hold."""

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from harness.downloads.disk import require_room, safe_parts, writing
from harness.errors import DataError

MOST_FILES = 100_000
MOST_BYTES = 64 * 10**9
_GROWTH = 200
_SMALL = 10**9
_CHUNK = 1 << 20
_MOST_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class _Member:
    """A regular file of an archive."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]


def unpack(archive: Path, folder: str, target: Path) -> list[Path]:
    """Write the files below ``folder`` of an archive to the folder ``target``, which is made.

    Args:
        archive: a zip, or a tar that may be compressed.
        folder: the archive's folder to take, ``""`` for all of it.
        target: an absent folder; what is in it after an error is to be removed by the caller.

    Returns:
        the files written.

    Raises:
        DataError: not an archive, damaged, unsafe, too big, or without that folder.
        NoRoomError, UserError: the disk is full or cannot be written.
    """
    with _reading():
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                return _write(archive, folder, target, _zip_members(opened))
        with _tar_bytes(archive) as content, suppress(_NoTar), _opened_tar(content, _most(archive)) as tar:
            return _write(archive, folder, target, _tar_members(tar))
    raise DataError("what was fetched is neither a zip nor a tar archive")


def gunzip(packed: Path, target: Path) -> None:
    """Write the content of a gzip file to ``target``; what is there after an error is to be removed by the caller.

    Raises:
        DataError: not a gzip file, damaged, or too big.
        NoRoomError, UserError: the disk is full or cannot be written.
    """
    left = _most(packed)
    with writing(target):
        stream = target.open("wb")
    with _reading(), gzip.open(packed) as source, stream:
        while block := source.read(_CHUNK):
            left -= len(block)
            if left < 0:
                raise DataError("the gzip file would unpack to more than is plausible")
            with writing(target):
                stream.write(block)
        with writing(target):
            stream.flush()


def _most(packed: Path) -> int:
    """Bytes that a file may plausibly unpack to."""
    return min(max(_SMALL, _GROWTH * packed.stat().st_size), MOST_BYTES)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise DataError(f"the archive is damaged: {error or type(error).__name__}") from None
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or an unknown compression
        raise DataError(f"the archive cannot be read: {error}") from None


def _zip_members(opened: zipfile.ZipFile) -> Iterator[_Member]:
    for info in opened.infolist():
        _require_safe(info.filename)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise DataError(f"the archive holds a link or a device: '{info.filename}'")
        if not info.is_dir():
            yield _Member(info.filename, info.file_size, partial(opened.open, info))


def _tar_members(opened: tarfile.TarFile) -> Iterator[_Member]:
    for info in opened:
        _require_safe(info.name)
        if not info.isfile() and not info.isdir():
            raise DataError(f"the archive holds a link or a device: '{info.name}'")
        if info.isfile():
            yield _Member(info.name, info.size, partial(_tar_stream, opened, info))


class _NoTar(Exception):
    """The content is no tar archive."""


class _Bounded(io.RawIOBase):
    """The content of an archive, of which no more is read than is plausible, at once or in all.

    The format lets a header say how long it is, and Python reads a header as a whole.
    """

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._most = stream, most

    def read(self, size: int = -1) -> bytes:
        """Read bytes."""
        if not 0 <= size <= _MOST_AT_ONCE:
            raise DataError("the archive has a header of an implausible size")
        data = self._stream.read(size)
        if self._stream.tell() > self._most:
            raise DataError("the archive would unpack to more than is plausible")
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        if whence == io.SEEK_SET and offset > self._most:
            raise DataError("the archive would unpack to more than is plausible")
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """The place."""
        return self._stream.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


_PACKED: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ", lzma.open),
)


def _tar_bytes(archive: Path) -> IO[bytes]:
    """The tar archive itself, unpacked as it is read."""
    with archive.open("rb") as stream:
        start = stream.read(6)
    opened: IO[bytes] = next((opener for magic, opener in _PACKED if start.startswith(magic)), io.open)(archive, "rb")
    return opened


@contextmanager
def _opened_tar(content: IO[bytes], most: int) -> Iterator[tarfile.TarFile]:
    """The archive.

    Raises:
        _NoTar: it is none.
    """
    try:
        opened = tarfile.TarFile(fileobj=_Bounded(content, most))
    except tarfile.ReadError:
        raise _NoTar from None
    with opened:
        yield opened


def _tar_stream(opened: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    stream = opened.extractfile(info)
    if stream is None:
        raise DataError(f"the archive's '{info.name}' is not a file")
    return stream


def _require_safe(name: str) -> None:
    if safe_parts(name) is None:
        raise DataError(
            f"the archive holds a path that leads out of its folder, or that not every system has: {name!r}; "
            "nothing is unpacked"
        )


def _write(archive: Path, folder: str, target: Path, members: Iterable[_Member]) -> list[Path]:
    inside = safe_parts(folder) or ()
    chosen, others = _choose(members, inside)
    if not chosen:
        found = ", ".join(sorted(others)) or "nothing"
        raise DataError(f"the archive has no files in '{folder or '/'}'; it holds: {found}")
    total = sum(member.size for _, member in chosen)
    if total > _most(archive) or len(chosen) > MOST_FILES:
        raise DataError(f"the archive would unpack to {total} bytes in {len(chosen)} files, which is not plausible")
    with writing(target):
        target.mkdir(parents=True)
    require_room(target, total)
    return [_write_file(member, target.joinpath(*parts[len(inside) :])) for parts, member in chosen]


def _choose(
    members: Iterable[_Member], inside: tuple[str, ...]
) -> tuple[list[tuple[tuple[str, ...], _Member]], set[str]]:
    """The members below a folder with the parts of their names, and the top-level names of the others."""
    chosen: list[tuple[tuple[str, ...], _Member]] = []
    others: set[str] = set()
    for count, member in enumerate(members):
        if count > MOST_FILES:
            raise DataError(f"the archive holds more than {MOST_FILES:,} files, which is not plausible")
        parts = safe_parts(member.name) or ()
        if len(parts) > len(inside) and parts[: len(inside)] == inside and parts[0] != "__MACOSX":
            chosen.append((parts, member))
        else:
            others.add(parts[0] if parts else member.name)
    return chosen, others


def _write_file(member: _Member, path: Path) -> Path:
    left = member.size
    source = member.open()
    with writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stream = path.open("xb")
        except (FileExistsError, NotADirectoryError):
            raise DataError(f"the archive holds '{member.name}' twice, or as a file and a folder") from None
    with source, stream:
        while block := source.read(_CHUNK):
            left -= len(block)
            if left < 0:
                raise DataError(f"the archive's '{member.name}' is longer than the archive says")
            with writing(path):
                stream.write(block)
        with writing(path):
            stream.flush()
    if left:
        raise DataError(f"the archive's '{member.name}' is shorter than the archive says")
    return path
