"""Bring one download to its place in the data folder: locked, resumable, and renamed into place when it is whole."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.data import Download
from harness.downloads.disk import below, writing
from harness.downloads.receipts import write_receipt
from harness.downloads.transfer import Patience, Transfer, Watcher
from harness.downloads.unpack import gunzip, unpack
from harness.downloads.web import Unreachable
from harness.errors import DataError
from harness.safe_io import size_text
from harness.store.leases import Lease, try_lock

_LOOK = 0.2


@dataclass(frozen=True)
class Fetched:
    """A download in its place.

    Attributes:
        path: the file or folder.
        fetched: whether this call brought it; else it was there.
        differing: files that are not those that this code was tested with, below the data folder.
    """

    path: Path
    fetched: bool
    differing: tuple[str, ...] = ()


def is_placed(download: Download, root: Path) -> bool:
    """Whether something lies where the download belongs: a file that is not empty, or a folder with something in it.

    Raises:
        DataError: a file lies in place of a folder, or the reverse; or it cannot be looked at.
    """
    path = below(root, download.path)
    try:
        if path.is_dir():
            if download.unpack is None:
                raise DataError(f"{path}: a file is expected here, but this is a folder")
            return any(path.iterdir())
        if not path.exists():
            return False
        if download.unpack is not None:
            raise DataError(f"{path}: a folder is expected here, but this is a file")
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    known = download.size if download.is_as_sent else None
    if size == 0 or (known is not None and size != known):
        expected = f", not {known}" if known is not None else ""
        raise DataError(f"{path}: the file has {size} bytes{expected}; delete it and fetch it again")
    return True


def fetch(
    download: Download,
    root: Path,
    *,
    offline: bool = False,
    patience: Patience | None = None,
    watcher: Watcher | None = None,
) -> Fetched:
    """Bring a download to its place, unless it is there.

    Args:
        download: what is wanted.
        root: the data folder; made where absent.
        offline: use no network.
        patience: timeouts and attempts.
        watcher: told of the progress.

    Raises:
        DataError: it cannot be had; the text names the place, the address and what to do by hand.
        NoRoomError, UserError: the disk is full, or the folder cannot be written.
        KeyboardInterrupt: what has arrived is kept; the next call goes on from there.
    """
    if is_placed(download, root):
        return Fetched(below(root, download.path), False)
    if download.url is None:
        raise DataError(by_hand(download, root, "only a person can fetch it"))
    if offline:
        raise DataError(by_hand(download, root, "no network is to be used (--offline or BENCH_OFFLINE)"))
    told = watcher or Watcher()
    target = below(root, download.path)
    with writing(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target, told):
        if is_placed(download, root):
            return Fetched(target, False)
        return _bring(download, download.url, root, patience or Patience(), told)


def by_hand(download: Download, root: Path, why: str) -> str:
    """What a person is to do: the place, the address and how."""
    target = below(root, download.path)
    lines = [f"cannot fetch {download.path}: {why}", f"  put it at  {target}"]
    if download.unpack is not None:
        inner = (
            f"the content of the archive's folder {download.unpack}/" if download.unpack else "the archive's content"
        )
        lines[1] += f"{os.sep}  (a folder: {inner})"
    if download.is_gzip:
        lines[1] += "  (unpacked)"
    if download.url is not None:
        size = f"  ({size_text(download.size)})" if download.size else ""
        lines.append(f"  it is at   {download.url}{size}")
    if download.sha256:
        lines.append(f"  SHA-256    {download.sha256}")
    if download.how:
        lines.append("  how        " + download.how.strip().replace("\n", "\n             "))
    return "\n".join(lines)


@contextmanager
def _alone(target: Path, watcher: Watcher) -> Iterator[None]:
    """Hold the right to fetch a target; wait while another process has it."""
    path, waited = target.with_name(f".{target.name}.lock"), False
    while (lease := _lock(path)) is None:
        if not waited:
            watcher.told(f"another process is fetching {target.name}; waiting for it")
            waited = True
        time.sleep(_LOOK)
    with lease:
        yield


def _lock(path: Path) -> Lease | None:
    with writing(path):
        return try_lock(path)


def _bring(download: Download, url: str, root: Path, patience: Patience, watcher: Watcher) -> Fetched:
    target = below(root, download.path)
    part = target.with_name(f"{target.name}.part")
    transfer = Transfer(url, part, download.size, download.sha256, patience, watcher)
    try:
        digest = transfer.run()
    except Unreachable as error:
        kept = f"; {size_text(part.stat().st_size)} are kept, so that a later fetch goes on" if part.exists() else ""
        raise DataError(by_hand(download, root, f"{error}{kept}")) from None
    except DataError as error:
        raise DataError(by_hand(download, root, str(error))) from None
    try:
        files = _put(part, download, target)
    except DataError as error:
        transfer.discard()
        raise DataError(by_hand(download, root, f"{url}: {error}")) from None
    transfer.discard()
    write_receipt(root, download.path, url, digest, files)
    return Fetched(target, True, differing(download, root))


def _put(part: Path, download: Download, target: Path) -> list[Path]:
    """Put what was sent in its place, unpacked where it is packed; gives the files."""
    if download.unpack is not None:
        return _unpack(part, download.unpack, target)
    if download.is_gzip:
        draft = target.with_name(f".{target.name}.unpacking")
        try:
            gunzip(part, draft)
            _place(draft, target)
        finally:
            draft.unlink(missing_ok=True)
    else:
        _place(part, target)
    return [target]


def _place(part: Path, target: Path) -> None:
    with writing(target):
        with part.open("rb+") as stream:
            os.fsync(stream.fileno())
        part.replace(target)


def _unpack(archive: Path, folder: str, target: Path) -> list[Path]:
    draft = target.with_name(f".{target.name}.unpacking")
    shutil.rmtree(draft, ignore_errors=True)  # of a process that was killed
    try:
        files = unpack(archive, folder, draft)
        with writing(target):
            if target.is_dir():
                target.rmdir()
            draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return [target / path.relative_to(draft) for path in files]


def differing(download: Download, root: Path) -> tuple[str, ...]:
    """The files that are there and are not those that this code was tested with, below the data folder."""
    from harness.store.keys import hash_file

    found = []
    for name, digest in download.tested.items():
        path = below(root, name)
        if path.is_file() and hash_file(path) != digest:
            found.append(name)
    return tuple(found)
