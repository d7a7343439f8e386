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
    """Raise :class:`Terminated` on SIGTERM inside the block.

    Only the main thread may set signal handlers; elsewhere the block changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise Terminated
