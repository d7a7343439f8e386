"""Check each component in a process of its own, so that one that hangs or ends its process costs only itself.

The processes are forked from a server that has torch and the kit loaded. They send the name of each check that begins
and its outcome, so that the check that ended a process is known.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from harness.engine.supervisor import Child, prepare_fork_server
from harness.registry.catalog import Entry
from harness.safe_io import size_text
from harness.testing.report import Outcome, Report

LIMIT = 300.0
"""Seconds that the checks of one component may take."""
MEMORY = 4 * 10**9
"""Bytes that they may take: toy data need a tenth of it."""
_POLL = 0.5  # seconds between two looks at the processes' memory
_PRELOAD = ("harness.engine.preload", "harness.testing.checks", "sklearn.cluster", "sklearn.metrics")
"""Loaded once for all processes; most checks need all of these."""
_IMPORT = ("import", "The component can be imported.")
_PRINTED = 8  # lines that a report shows
_LONGEST = 200
_START = 120.0  # seconds that the server may take to load torch and fork; the limit counts from then on


def check_apart(
    entries: Sequence[Entry], data_dir: Path | None, jobs: int, limit: float, memory: int = MEMORY
) -> Iterator[Report]:
    """Yield a report for each component, in order.

    Args:
        data_dir: the folder of data files, for datasets that read some.
        jobs: processes at a time.
        limit: seconds that the checks of one component may take.
        memory: bytes of resident memory that they may take.
    """
    prepare_fork_server(_PRELOAD)
    waiting, running = deque(enumerate(entries)), dict[int, _Check]()
    done: dict[int, Report] = {}
    with tempfile.TemporaryDirectory(prefix="bench-check-") as logs:
        try:
            for position in range(len(entries)):
                while position not in done:
                    while waiting and len(running) < jobs:
                        number, entry = waiting.popleft()
                        running[number] = _Check.start(entry, data_dir, limit, memory, Path(logs) / str(number))
                    left = min(check.left() for check in running.values())
                    wait([check.child.line for check in running.values()], timeout=min(max(left, 0.0), _POLL))
                    done |= {n: report for n, check in running.items() if (report := check.look()) is not None}
                    running = {n: check for n, check in running.items() if n not in done}
                yield done.pop(position)
        finally:
            for check in running.values():
                check.child.kill()


@dataclass
class _Check:
    """A process that checks one component, and its messages so far; it prints to a log."""

    entry: Entry
    limit: float
    memory: int
    child: Child
    log: Path
    began: float = field(default_factory=time.monotonic)
    started: bool = False
    at: tuple[str, str] = _IMPORT
    outcomes: list[Outcome] = field(default_factory=list)

    @classmethod
    def start(cls, entry: Entry, data_dir: Path | None, limit: float, memory: int, log: Path) -> _Check:
        """Start the process."""
        child = Child.fork(_work, entry.to_json(), data_dir, dict(os.environ), log=log)
        return cls(entry, limit, memory, child, log)

    def left(self) -> float:
        """Return the seconds until its time is up."""
        return (self.limit if self.started else _START) - (time.monotonic() - self.began)

    def look(self) -> Report | None:
        """Return the report if it has ended or its time is up, with the last lines that it printed."""
        report = self._look()
        if report is None:
            return None
        lines, last = _printed(self.log)
        return replace(report, lines=lines, printed=last)

    def _look(self) -> Report | None:
        """Read its messages; return the report if it has ended or its time is up."""
        try:
            while True:
                what, value = self.child.receive(0)
                if what == "report":
                    return Report.from_json(value)
                if what == "starts":
                    self.began, self.started = time.monotonic(), True
                elif what == "begins":
                    self.at = value
                else:
                    self.outcomes.append(value)
        except EOFError:
            return self._failed(f"the process {self.child.ending()} in this check")
        except TimeoutError:
            pass
        if self.child.memory() > self.memory:
            where = self._stop()
            return self._failed(
                f"the component's checks took more than {size_text(self.memory)} of memory, and were stopped in this "
                f"one{where}: something is kept from batch to batch or from call to call, or is far too large for toy "
                "data (give smaller settings in `probes`, or more with --memory)"
            )
        if self.left() > 0:
            return None
        where = self._stop()
        return self._failed(
            f"the component's checks did not end within {self.limit:g} s, and were stopped in this one{where}: an "
            "endless loop, or too much work for toy data (give smaller settings in `probes`, or a longer --timeout)"
        )

    def _failed(self, why: str) -> Report:
        outcome = Outcome(self.at[0], self.at[1], "failed", (why,))
        seconds = time.monotonic() - self.began
        return Report(self.entry.kind, self.entry.name, (*self.outcomes, outcome), seconds)

    def _stop(self) -> str:
        """Kill the process; return `` (file.py:LINE)``, where it was in the component's file or in another plugin's."""
        place = self.child.place(self.entry.file)
        self.child.kill()
        return f" ({place})" if place else ""


def _printed(log: Path) -> tuple[int, tuple[str, ...]]:
    """Return the number of lines of a log, and the last of them without words that a carriage return overwrote."""
    count, last = 0, deque[bytes](maxlen=_PRINTED)
    with suppress(FileNotFoundError), log.open("rb") as stream:
        for line in stream:
            count += 1
            last.append(line)
    texts = [line.decode("utf-8", "replace").rstrip("\r\n").rpartition("\r")[2] for line in last]
    return count, tuple(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in texts)


def _work(line: Connection, entry: dict[str, Any], data_dir: Path | None, environ: dict[str, str]) -> None:
    """Check a component and send the outcomes. Runs in the process."""
    from harness.registry.discovery import load_one
    from harness.testing.checks import check_component

    os.environ.clear()
    os.environ.update(environ)  # the server's may be older
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # so that its end loses none
    line.send(("starts", None))
    try:
        cls = load_one(Entry.from_json(entry))
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        report = Report(entry["kind"], entry["name"], (Outcome(*_IMPORT, "failed", (problem,)),))
    else:
        report = check_component(cls, data_dir, tell=line.send)
    line.send(("report", report.to_json()))
