"""What a component prints while it is checked: counted, and its last lines kept, whatever it prints."""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Thread

KEPT = 8
"""Lines that a report can show."""
_LONGEST = 200
_CHUNK = 1 << 16


class Printed:
    """Reads the output of a process from a pipe until nobody can write to it, in a thread of its own.

    Attributes:
        lines: how many lines there were.
    """

    def __init__(self, link: Connection) -> None:
        self.lines = 0
        self._link = link
        self._last: deque[str] = deque(maxlen=KEPT)
        self._rest = b""
        self._reader = Thread(target=self._read, name="bench-check-output", daemon=True)
        self._reader.start()

    def settle(self, seconds: float) -> None:
        """Wait for what an ended process left in the pipe; a process that it started may hold it open for longer."""
        self._reader.join(seconds)

    @property
    def last(self) -> tuple[str, ...]:
        """The last lines, as they were printed but for their length."""
        return tuple(self._last)

    def _read(self) -> None:
        with suppress(OSError), self._link:
            while chunk := os.read(self._link.fileno(), _CHUNK):
                *whole, rest = (self._rest + chunk).split(b"\n")
                self._rest = rest[-4 * _LONGEST :]
                self._note(whole)
        self._note([self._rest] if self._rest else [])

    def _note(self, lines: list[bytes]) -> None:
        self.lines += len(lines)
        self._last.extend(_shortened(line) for line in lines[-KEPT:])


def _shortened(line: bytes) -> str:
    """A line without what a carriage return let the next words overwrite, as progress bars do."""
    text = line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def print_to(link: Connection) -> None:
    """Send all that this process prints to a pipe, line by line, so that its end loses none."""
    for stream in (1, 2):
        os.dup2(link.fileno(), stream)
    link.close()
    for text in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            text.reconfigure(line_buffering=True)  # type: ignore[union-attr]
