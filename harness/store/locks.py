"""Advisory file locks that end with their process, however it ends."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from types import TracebackType

_BUSY = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK}
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


class Lease:
    """A held lock; released by :meth:`release`, at the end of a ``with`` block, or by the death of the process."""

    def __init__(self, path: Path, descriptor: int, *, exclusive: bool, made: bool) -> None:
        self._path, self._descriptor, self._made = path, descriptor, made
        self.exclusive = exclusive
        """Whether nobody else can have it: false on a file system without locks."""

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""
        if self._descriptor < 0:
            return
        # Unlinked while held: whoever opened the old file notices in try_lock that its name now leads elsewhere.
        if os.name == "posix" and (self.exclusive or self._made):
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def try_lock(path: Path) -> Lease | None:
    """Take the lock of a file, made where absent, without waiting.

    POSIX ``flock`` or Windows ``msvcrt.locking``. On a file system without locks (some network mounts) everyone
    gets the lock: two processes may then do the same work, which costs time and harms nothing, because an
    artifact is committed by one rename and the first one stays.

    Returns:
        the lease, or None where another holder has it.

    Raises:
        OSError: the file cannot be made.
    """
    while True:
        made = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            locked = _lock(descriptor)
            if locked is False:
                os.close(descriptor)
                return None
            if _still_named(path, descriptor):
                return Lease(path, descriptor, exclusive=locked is not None, made=made)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Whether we have it now; None where the file system has no locks."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        if error.errno not in _UNSUPPORTED:
            raise
        return None
    return True


def _still_named(path: Path, descriptor: int) -> bool:
    """Whether the locked file is still the one under its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
