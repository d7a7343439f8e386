"""Putting things in place, whole or not at all, also where renames are odd (network file systems). No torch."""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from pathlib import Path

_TAKEN = frozenset({errno.EEXIST, errno.ENOTEMPTY})
_PASSING = frozenset({errno.ESTALE, errno.EBUSY, errno.EAGAIN, errno.EINTR, errno.ETXTBSY, *_TAKEN})
_PAUSES = (0.02, 0.1, 0.4, 1.0)
"""Seconds between attempts at a rename that may succeed later."""


def move(source: Path, target: Path, pauses: Sequence[float] = _PAUSES) -> None:
    """Rename a file or folder, again after a while where the error is known to pass.

    A rename that a network file system did, but reported as failed (the answer was lost, and the second attempt
    found nothing to rename), counts as done.

    Raises:
        OSError: it failed for good; at once, with ``EEXIST`` or ``ENOTEMPTY``, where something stands at the target.
    """
    for pause in (*pauses, None):
        try:
            source.replace(target)
            return
        except OSError as error:
            there = target.exists()
            if there and not source.exists():
                return
            if pause is None or error.errno not in _PASSING or (error.errno in _TAKEN and there):
                raise
        time.sleep(pause)
