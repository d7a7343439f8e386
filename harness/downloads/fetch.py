"""Bring a download to its place in the data folder: locked, resumable, unpacked, and renamed into place when whole."""

from __future__ import annotations

import gzip
import lzma
import os
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PureWindowsPath
from typing import Any

from harness.data import Download
from harness.downloads.files import HINT
from harness.downloads.transfer import Report, Unreachable, discard, resumable, transfer
from harness.errors import DataError
from harness.safe_io import size_text, writing
from harness.store import try_lock
from harness.store.leases import delete


def fetch(download: Download, root: Path, report: Report, *, offline: bool = False) -> bool:
    """Bring a download to its place, and return False if it was there.

    Args:
        download: what is wanted.
        root: the data folder; made where absent.
        report: called with a line for people, for what is fetched, each retry and wait.
        offline: use no network.

    Raises:
        DataError: it cannot be had; the text names the place, the address and what to do by hand.
        FileError: the disk is full, or the folder cannot be written.
        KeyboardInterrupt: what has arrived is kept; the next call goes on from there.
    """
    target = root / download.path
    if _is_placed(download, target):
        return False
    if download.url is None:
        raise DataError(_by_hand(download, target, "only a person can fetch it"))
    if offline:
        raise DataError(_by_hand(download, target, "no network is to be used (--offline or BENCH_OFFLINE)"))
    with writing(target.parent, HINT):
        target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target, report):
        if _is_placed(download, target):
            return False
        _bring(download, download.url, root, report)
    return True


def _is_placed(download: Download, target: Path) -> bool:
    """Return True if a file that is not empty, or a folder with something in it, lies where the download belongs.

    Raises:
        DataError: a file lies in place of a folder, or the reverse; or it cannot be looked at.
    """
    try:
        if not target.exists():
            return False
        if target.is_dir() != (download.unpack is not None):
            raise DataError(f"{target}: a {'file' if target.is_dir() else 'folder'} is expected here")
        if target.is_dir():
            return any(target.iterdir())
        size = target.stat().st_size
    except OSError as error:
        raise DataError(f"{target}: cannot be read: {error.strerror or error}") from None
    if size == 0 or (download.is_as_sent and size != (download.size or size)):
        expected = f", not {download.size}" if download.size else ""
        raise DataError(f"{target}: the file has {size} bytes{expected}; delete it and fetch it again")
    return True


def _by_hand(download: Download, target: Path, why: str) -> str:
    """Say what a person is to do: the place, the address and how."""
    place = str(target)
    if download.unpack is not None:
        place += f"{os.sep}  (the content of the archive{f', its folder {download.unpack}/' * bool(download.unpack)})"
    elif download.is_gzip:
        place += "  (unpacked)"
    size = f"  ({size_text(download.size)})" if download.size else ""
    lines = {
        "put it at": place,
        "it is at": download.url and download.url + size,
        "SHA-256": download.sha256,
        "how": download.how.strip().replace("\n", "\n             "),
    }
    told = [f"  {name:<9}  {text}" for name, text in lines.items() if text]
    return "\n".join([f"cannot fetch {download.path}: {why}", *told])


@contextmanager
def _locked(target: Path, report: Report) -> Iterator[None]:
    """Hold the right to fetch a target; wait while another process has it."""
    path, waited = target.with_name(f".{target.name}.lock"), False
    while (lease := try_lock(path, HINT)) is None:
        if not waited:
            report(f"another process is fetching {target.name}; waiting for it")
            waited = True
        time.sleep(0.2)
    with lease:
        yield


def _bring(download: Download, url: str, root: Path, report: Report) -> None:
    target = root / download.path
    part = target.with_name(f"{target.name}.part")
    try:
        transfer(url, part, download.size, download.sha256, report)
    except DataError as error:
        kept = resumable(part) if isinstance(error, Unreachable) else 0
        more = f"; {size_text(kept)} are kept, so that a later fetch goes on" if kept else ""
        raise DataError(_by_hand(download, target, f"{error}{more}")) from None
    try:
        _place(part, download, target)
    except DataError as error:
        discard(part)
        raise DataError(_by_hand(download, target, f"{url}: {error}")) from None
    discard(part)


def _place(part: Path, download: Download, target: Path) -> None:
    """Rename what was sent into place, unpacked where it is packed."""
    draft = target.with_name(f".{target.name}.unpacking")
    delete(draft)  # of a process that was killed
    try:
        if download.unpack is not None:
            unpack(part, download.unpack, draft)
        elif download.is_gzip:
            gunzip(part, draft)
        else:
            draft = part
        with writing(target, HINT):
            if target.is_dir():
                target.rmdir()
            draft.rename(target)
    finally:
        if draft != part:
            delete(draft)


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
                infos = [info for info in zipped.infolist() if not info.filename.endswith("/")]
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
    if not all(parts for parts, _, _ in named):
        raise DataError("the archive holds a file without a name; nothing is unpacked")
    # Of several members of one name the last holds, as where a file was added to an archive again.
    chosen = {parts[len(inside) :]: content for parts, _, content in named if parts[: len(inside)] == inside}
    if not chosen:
        held = ", ".join(sorted({parts[0] for parts, _, _ in named})) or "nothing"
        raise DataError(f"the archive has no files in '{folder or '/'}'; it holds: {held}")
    if sum(size for _, size, _ in named) > most:
        raise DataError("the archive would unpack to more than is plausible")
    with writing(target, HINT):
        target.mkdir(parents=True)
    for parts, content in chosen.items():
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
