"""Bring a download to its place in the data folder: locked, resumable, and renamed into place when it is whole."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.data import Download
from harness.downloads.files import HINT, write_receipt
from harness.downloads.transfer import Report, Unreachable, bytes_of, discard, transfer
from harness.downloads.unpack import gunzip, unpack
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
    while True:
        with writing(path, HINT):
            lease = try_lock(path)
        if lease is not None:
            break
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
        digest = transfer(url, part, download.size, download.sha256, report)
    except DataError as error:
        kept = isinstance(error, Unreachable) and part.exists()
        more = f"; {size_text(bytes_of(part))} are kept, so that a later fetch goes on" if kept else ""
        raise DataError(_by_hand(download, target, f"{error}{more}")) from None
    try:
        _place(part, download, target)
    except DataError as error:
        discard(part)
        raise DataError(_by_hand(download, target, f"{url}: {error}")) from None
    discard(part)
    files = sorted(path for path in target.rglob("*") if path.is_file()) if target.is_dir() else [target]
    write_receipt(root, download.path, url, digest, files)


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
