"""Where a worker process is at the moment: it writes its stack into a pipe when it is sent a signal."""

from __future__ import annotations

import faulthandler
import os
import re
import signal
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from harness.engine.failures import of_plugin

_FRAME: Final = re.compile(r'File "(.+)", line (\d+)')
_LOOK: Final = 0.5  # seconds for a stack to come: none does from a stopped process
_QUIET: Final = 0.05  # seconds without more of it
_MOST: Final = 1 << 16


def show_stack_to(link: Connection) -> None:
    """Let this process write its main thread's stack, also from within native code, when it is asked for."""
    faulthandler.register(signal.SIGUSR1, file=os.dup(link.fileno()), all_threads=False)


def place_of_process(pid: int, link: Connection) -> str:
    """``file.py:LINE`` of the innermost line of a plugin where a process is; empty where it does not tell.

    Meant for a process that is killed next.
    """
    text, wait = b"", _LOOK
    with suppress(OSError):
        os.kill(pid, signal.SIGUSR1)
        while len(text) < _MOST and link.poll(wait):
            more = os.read(link.fileno(), _MOST)
            if not more:
                break
            text, wait = text + more, _QUIET
    for file, line in _FRAME.findall(text.decode("utf-8", "replace")):
        if of_plugin(file):
            return f"{Path(file).name}:{line}"
    return ""
