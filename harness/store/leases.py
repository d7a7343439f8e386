"""Leases: file locks that end with their process, the runs that hold one, and what dead processes left. No torch.

Where the store cannot be written, they raise a :class:`harness.errors.FileError`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from calendar import timegm
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import DataError, FileError, UserError
from harness.safe_io import RUN_ID, writing

if TYPE_CHECKING:
    from harness.store.store import Store

LOCK = ".lock"
_RUN = "run-"
"""The start of the name of a run's lease."""
_MOMENT, _TICKS = "%Y%m%d-%H%M%S", 1 << 16
_BUSY = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK}
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


class Lease:
    """A held lock; released by :meth:`release`, at the end of a ``with`` block, or by the death of the process."""

    def __init__(self, path: Path, descriptor: int, *, exclusive: bool, made: bool) -> None:
        self._path, self._descriptor, self._made = path, descriptor, made
        self.exclusive = exclusive
        """False on a file system without locks, where others may hold it too."""

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""
        if self._descriptor < 0:
            return
        # Unlinked while held: whoever opened the old file notices in try_lock that its name now leads elsewhere.
        if self.exclusive or self._made:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def try_lock(path: Path, hint: str = "") -> Lease | None:
    """Take the lock of a file, made where absent, without waiting.

    On a file system without locks (some network mounts) everyone gets the lock: two processes may then do the same
    work, which costs time and harms nothing: an artifact is committed by one rename, and the first one stays.

    Returns:
        the lease, or None where another holder has it.

    Raises:
        FileError: the file cannot be made; ``hint`` is advice that its text ends with.
    """
    while True:
        made, exclusive = not path.exists(), True
        with writing(path, hint):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    os.close(descriptor)
                    if error.errno in _BUSY:
                        return None
                    raise
                exclusive = False
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return Lease(path, descriptor, exclusive=exclusive, made=made)
        os.close(descriptor)  # its holder removed the file between the two steps


def leftovers(root: Path) -> list[Path]:
    """List the drafts in a store whose writer is gone, however it ended."""
    with suppress(FileError):  # a store that cannot be written can be looked at
        return [path for path in _abandoned(root) if path.exists()]
    return []


def sweep(root: Path) -> int:
    """Remove drafts whose writer is gone and locks that nobody holds, and close the runs that were killed.

    Returns:
        how many drafts there were.
    """
    removed = 0
    for path in _abandoned(root):
        removed += path.exists()
        delete(path)
        delete(path.with_name(path.name + LOCK))
    for path in (root / "leases").glob(f"*{LOCK}"):
        if (lease := try_lock(path)) is not None:
            with lease:
                name = path.stem.removeprefix(_RUN)
                if lease.exclusive and path.name.startswith(_RUN) and RUN_ID.fullmatch(name):
                    close_run(root / "runs" / name)
    return removed


def _abandoned(root: Path) -> Iterator[Path]:
    """Yield each draft that nobody writes any more; its lock is held until the next one is asked for."""
    for path in sorted({path.with_name(path.name.removesuffix(LOCK)) for path in (root / "tmp").glob("*")}):
        if (lease := try_lock(path.with_name(path.name + LOCK))) is not None:
            with lease:
                if lease.exclusive:  # else nobody can tell whether its writer lives
                    yield path


def new_run_name(suite: str, runs: Path) -> str:
    """Return a name for a new run, with its time in UTC; those of a suite in the folder ``runs`` sort by age.

    The last digits count the 65,536th parts of a second. Where the clock was set back, the name follows the newest.
    """
    label = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in suite)[:60] or "run"
    ticks = int(time.time() * _TICKS)
    for path in runs.glob(f"*-*-{label}-*"):
        with suppress(ValueError):  # of another suite, whose name is longer
            moment, part = path.name[:15], path.name.removeprefix(f"{path.name[:15]}-{label}-")
            ticks = max(ticks, timegm(time.strptime(moment, _MOMENT)) * _TICKS + int(part, 16) + 1)
    seconds, tick = divmod(ticks, _TICKS)
    return f"{time.strftime(_MOMENT, time.gmtime(seconds))}-{label}-{tick:04x}"


@contextmanager
def claim_run(store: Store, suite: str) -> Iterator[str]:
    """Give a new run its name, which is leased until the block or the process ends; tidy up where the block raises."""
    while True:
        name = new_run_name(suite, store.runs)
        lease = store.try_lease(_RUN + name)  # a sweep may hold it for a moment
        if lease is not None and not (store.runs / name).exists():
            break
        if lease is not None:
            lease.release()
        time.sleep(0.001)
    with lease:
        try:
            yield name
        except BaseException as error:
            close_run(store.runs / name, refused=isinstance(error, UserError))
            raise


def running(store: Store) -> set[str]:
    """Return the ids of the runs that are going on; without locks in the file system, those that were killed too."""
    ids = set()
    for path in (store.root / "leases").glob(f"{_RUN}*{LOCK}"):
        lease = store.try_lease(path.stem)
        if lease is None or not lease.exclusive:
            ids.add(path.stem.removeprefix(_RUN))
        if lease is not None:
            lease.release()
    return ids


def close_run(folder: Path, *, refused: bool = False) -> None:
    """Tidy the folder of a run that was cut short: remove half-written files, and record that it was interrupted.

    One that was ``refused`` before anything was saved is removed.
    """
    from harness.results.run_record import RECORD, RunRecord

    for path in folder.glob(".*"):
        delete(path)
    if not (folder / RECORD).exists():
        delete(folder)  # killed before it had recorded anything
        return
    with suppress(DataError, OSError):
        record = RunRecord.load(folder)
        if record.status == "running" and refused:
            delete(folder)
        elif record.status == "running":
            replace(record, status="interrupted").save(folder)


def delete(path: Path) -> None:
    """Remove a file, a link or a folder with all in it, as far as that is allowed."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
