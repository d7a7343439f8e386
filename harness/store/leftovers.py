"""What dead processes leave in a store: drafts, half-written small files, locks. No torch."""

from __future__ import annotations

import os
import platform
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness.errors import DataError
from harness.safe_io import RUN_ID
from harness.store.artifact import StoreError, writing
from harness.store.locks import Lease, try_lock

RUN = "run-"
"""How the lease of a run's name begins."""
_LOCK = ".lock"
_FORGOTTEN = 7 * 86400.0
"""Seconds after which a draft of another machine is given up, where the file system has no locks to ask."""


def begin_draft(folder: Path, label: str) -> tuple[Path, Lease]:
    """A name for something to be written in a folder, and its lock, to be released when it is there or gone.

    Raises:
        StoreError: the folder cannot be written.
    """
    while True:
        path = folder / draft_name(label)
        lock = path.with_name(path.name + _LOCK)
        with writing(lock):
            lease = try_lock(lock)
        if lease is not None:
            return path, lease  # otherwise somebody who looks for leftovers was faster, and takes it for one


def draft_name(label: str) -> str:
    """A name that is unique and tells who writes it."""
    return f"{label}-{_host()}-{os.getpid()}-{uuid.uuid4().hex[:12]}"


def leftovers(store: Path) -> Iterator[Path]:
    """What :func:`sweep` would remove, without removing it; a lock with nothing beside it is not worth telling."""
    for path in _drafts(store):
        with suppress(StoreError):  # a store that cannot be written can be looked at
            if path.exists() and (lease := _claim(path)) is not None:
                lease.release()
                yield path


def sweep(store: Path) -> int:
    """Remove drafts and half-written files whose writer is gone, however it ended, and locks that nobody holds.

    Returns:
        how many drafts and files there were.

    Raises:
        StoreError: the store cannot be written.
    """
    removed = 0
    for path in _drafts(store):
        if (lease := _claim(path)) is not None:
            with lease:  # held until it is gone: who has just chosen the same name must not begin before
                removed += path.exists()
                delete(path)
            if not lease.exclusive:
                delete(path.with_name(path.name + _LOCK))
    for path in (store / "leases").glob(f"*{_LOCK}"):
        name = path.name.removesuffix(_LOCK)
        if (lease := _claim(path.with_name(name))) is not None:
            with lease:
                if name.startswith(RUN) and RUN_ID.fullmatch(name.removeprefix(RUN)):  # other names lead elsewhere
                    close_run(store / "runs" / name.removeprefix(RUN))
    return removed


def close_run(folder: Path) -> None:
    """Bring the folder of a run that was cut short in order: half-written files go, and its record says so."""
    from harness.results.run_record import RECORD, RunRecord

    for path in folder.glob(".*"):
        delete(path)
    if not (folder / RECORD).exists():
        delete(folder)  # killed before it had written what it was
        return
    with suppress(DataError, OSError):
        record = RunRecord.load(folder)
        if record.status == "running":
            replace(record, status="interrupted").save(folder)


def _drafts(store: Path) -> list[Path]:
    return sorted({path.with_name(path.name.removesuffix(_LOCK)) for path in (store / "tmp").glob("*")})


def _claim(path: Path) -> Lease | None:
    """The lock of something that nobody writes any more, for the caller to release; None where somebody does.

    Where the file system has no locks, that its process has gone or its age tell.
    """
    lock = path.with_name(path.name + _LOCK)
    with writing(lock):
        lease = try_lock(lock)
    if lease is None or lease.exclusive or _owner_gone(path):
        return lease
    lease.release()
    return None


def _owner_gone(path: Path) -> bool:
    _, host, pid, _ = ("---" + path.name).rsplit("-", 3)
    if host == _host() and pid.isdigit():
        return not _alive(int(pid))
    with suppress(OSError):
        return time.time() - path.stat().st_mtime > _FORGOTTEN
    return False


def _alive(pid: int) -> bool:
    if os.name != "posix":  # signal 0 is a real one elsewhere
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _host() -> str:
    return "".join(letter for letter in platform.node() if letter.isalnum())[:32] or "host"


def delete(path: Path) -> None:
    """Remove a file, a link or a folder with all in it, as far as that is allowed."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
