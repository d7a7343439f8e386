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
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from harness.engine.process_state import switches_kept
from harness.engine.supervisor import Child, prepare_fork_server
from harness.registry.catalog import Entry
from harness.safe_io import size_text
from harness.testing.report import Outcome, Report

_POLL = 0.5  # seconds between two looks at the processes' memory
PRELOAD = ("harness.engine.preload", "harness.testing.checks", "sklearn.cluster", "sklearn.metrics")
"""Loaded once for all processes; most checks need all of these."""
_IMPORT = ("import", "The component can be imported.")
_PRINTED, _LONGEST = 8, 200  # lines that a report shows, and their length


def check_apart(
    entries: Sequence[Entry], data_dir: Path | None, jobs: int, limit: float, memory: int
) -> Iterator[Report]:
    """Yield a report for each component, in order.

    Args:
        data_dir: the folder of data files, for datasets that read some.
        jobs: processes at a time.
        limit: seconds that the checks of one component may take.
        memory: bytes of resident memory that they may take.
    """
    prepare_fork_server(PRELOAD)
    waiting, running = deque(enumerate(entries)), dict[int, _Check]()
    done: dict[int, Report] = {}
    with tempfile.TemporaryDirectory(prefix="bench-check-") as logs:
        try:
            for position in range(len(entries)):
                while position not in done:
                    while waiting and len(running) < jobs:
                        number, entry = waiting.popleft()
                        log = Path(logs) / str(number)
                        child = Child.fork(_work, entry.to_json(), data_dir, dict(os.environ), log=log)
                        running[number] = _Check(entry, limit, memory, child, log)
                    wait([check.child.line for check in running.values()], timeout=_POLL)
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
    at: tuple[str, str] | None = None
    outcomes: list[Outcome] = field(default_factory=list)

    def look(self) -> Report | None:
        """Read its messages; return the report if it has ended or is over a limit."""
        try:
            while (message := self.child.receive(0)) is not None:
                if isinstance(message, Outcome):
                    self.outcomes.append(message)
                    continue
                if self.at is None:  # the limit counts from here on: the server had to load torch before
                    self.began = time.monotonic()
                self.at = message
            return self._report()
        except EOFError:
            return self._failed(f"the process {self.child.ending()} in this check")
        except TimeoutError:
            pass
        if self.child.memory() > self.memory:
            return self._stopped(f"took more than {size_text(self.memory)} of memory", "more with --memory")
        if self.at is not None and time.monotonic() - self.began > self.limit:
            return self._stopped(f"did not end within {self.limit:g} s", "a longer --timeout")
        return None

    def _stopped(self, what: str, more: str) -> Report:
        """Kill the process; say where it was in the component's file or in another plugin's."""
        place = self.child.place(self.entry.file)
        self.child.kill()
        where = f" ({place})" if place else ""
        return self._failed(
            f"the component's checks {what}, and were stopped in this one{where}; they may need smaller settings in "
            f"`probes`, or {more}"
        )

    def _failed(self, why: str) -> Report:
        self.outcomes.append(Outcome(*(self.at or _IMPORT), "failed", (why,)))
        return self._report()

    def _report(self) -> Report:
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        printed = tuple(line.rpartition("\r")[2][:_LONGEST] for line in text.splitlines()[-_PRINTED:])
        seconds = time.monotonic() - self.began
        return Report(self.entry.kind, self.entry.name, tuple(self.outcomes), seconds, printed)


def _work(line: Connection, entry: dict[str, Any], data_dir: Path | None, environ: dict[str, str]) -> None:
    """Check a component; send name and contract of each check, its outcome, and None at the end."""
    from harness.registry.discovery import load_one
    from harness.testing.checks import check_component, left_changed

    os.environ.clear()
    os.environ.update(environ)  # the server's may be older
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # so that its end loses none
    line.send(_IMPORT)
    try:
        with switches_kept() as changed:
            cls = load_one(Entry.from_json(entry))
    except Exception as error:
        line.send(Outcome(*_IMPORT, "failed", (f"{type(error).__name__}: {error}",)))
    else:
        if changed:
            line.send(Outcome(*_IMPORT, "failed", tuple(map(left_changed, changed))))
        check_component(cls, data_dir, tell=line.send)
    line.send(None)
