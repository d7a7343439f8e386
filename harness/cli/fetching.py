"""Progress of a fetch on the error stream: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from harness.downloads.transfer import Watcher
from harness.safe_io import size_text

_EVERY = 10.0


class Lines(Watcher):
    """One line at the start, and one every ten seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._name, self._total, self._next = stream, "", "", 0.0

    def begun(self, name: str, at: int, total: int | None) -> None:
        """Say what comes."""
        self._name, self._total = name, "" if total is None else f" of {size_text(total)}"
        self._next = time.monotonic() + _EVERY
        kept = f", going on after {size_text(at)}" if at else ""
        self._say(f"fetching {name}{'' if total is None else f' ({size_text(total)})'}{kept}")

    def moved(self, at: int) -> None:
        """Say how far it is, now and then."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            self._say(f"{self._name}: {size_text(at)}{self._total}")

    def told(self, text: str) -> None:
        """Say it."""
        self._say(text)

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class Bar(Watcher):
    """A progress bar."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._task: Any = None

    def begun(self, name: str, at: int, total: int | None) -> None:
        """Show a bar, or set the one there is back."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(name, total=total, completed=at)

    def moved(self, at: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=at)

    def told(self, text: str) -> None:
        """Print above the bar."""
        self._progress.console.print(text, markup=False, highlight=False)


@contextmanager
def make_watcher() -> Iterator[Watcher]:
    """The progress display that fits the error stream."""
    if not sys.stderr.isatty():
        yield Lines(sys.stderr)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(30),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress)
