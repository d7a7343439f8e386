"""SIGTERM as an interrupt: clean up as on Ctrl-C, with an exit code of its own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM (a batch scheduler, ``kill``). Exit code 143; Ctrl-C has 130."""

    exit_code = 143


@contextmanager
def terminable() -> Iterator[None]:
    """Raise :class:`Terminated` on the first SIGTERM inside the block; further ones do not disturb the cleaning up.

    Only the main thread may set signal handlers; elsewhere, and inside another such block, it changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    if isinstance(before, _Once):
        yield
        return
    signal.signal(signal.SIGTERM, _Once())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Once:
    """A handler that raises the first time it is called."""

    def __init__(self) -> None:
        self._raised = False

    def __call__(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if not self._raised:
            self._raised = True
            raise Terminated
