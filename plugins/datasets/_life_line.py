"""Processes that end with the one that started them, though that one were killed."""

from __future__ import annotations

import os
import threading
from multiprocessing import connection


class LifeLine:
    """A pipe whose reading end goes to other processes, which end when its writing end is closed (not on Windows)."""

    def __init__(self) -> None:
        self.reading_end, self._writing_end = os.pipe() if os.name == "posix" else (-1, -1)

    @property
    def pass_fds(self) -> tuple[int, ...]:
        """For :class:`subprocess.Popen`."""
        return () if self.reading_end < 0 else (self.reading_end,)

    def cut(self) -> None:
        """End the processes."""
        if self._writing_end >= 0:
            os.close(self._writing_end)
            self._writing_end = -1

    def __enter__(self) -> LifeLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        if self.reading_end >= 0:
            os.close(self.reading_end)


def end_with(reading_end: int) -> None:
    """End this process when the life line is cut, or the process that holds it is gone."""

    def watch() -> None:
        connection.wait([reading_end])
        os._exit(1)

    if reading_end >= 0:
        threading.Thread(target=watch, name="bench-parent-watch", daemon=True).start()
