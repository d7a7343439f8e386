"""Checks each component in a process of its own, so that one that hangs or ends its process costs only itself.

The processes are forked from a server that has torch and the kit loaded. They tell which check begins and what each
found, so that what ended a process is known.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil

from harness.engine.process_tree_memory import held
from harness.registry.catalog import Entry
from harness.safe_io import size_text
from harness.testing.printed import Printed, print_to
from harness.testing.report import Outcome, Report

LIMIT = 300.0
"""Seconds that the checks of one component may take."""
MEMORY = 4 * 10**9
"""Bytes that they may take: toy data need a tenth of it."""
_POLL = 0.5  # seconds between two looks at the processes' memory
_PRELOAD = ("harness.engine.preload", "harness.testing.run", "sklearn.cluster", "sklearn.metrics")
"""Loaded once for all processes; most checks need all of these."""
_IMPORT = ("import", "The component can be imported.")
_CORE = str(Path(__file__).resolve().parents[1])
_FRAME = re.compile(r'File "(.+)", line (\d+)')
_LOOK = 0.5  # seconds to wait for a traceback
_LAST_WORDS = 1.0  # seconds to wait for what an ended process has printed
_START = 120.0  # seconds that the server may take to load torch and fork; the limit counts from then on


def check_apart(
    entries: Sequence[Entry], data_dir: Path | None, jobs: int, limit: float, memory: int = MEMORY
) -> Iterator[Report]:
    """A report for each component, in order.

    Args:
        data_dir: where data files are, for datasets that read some.
        jobs: processes at a time.
        limit: seconds that the checks of one component may take.
        memory: bytes of resident memory that they may take.
    """
    get_context("forkserver").set_forkserver_preload(list(_PRELOAD))
    waiting, running = deque(enumerate(entries)), dict[int, _Child]()
    done: dict[int, Report] = {}
    with tempfile.TemporaryDirectory(prefix="bench-check-") as folder:
        try:
            for position in range(len(entries)):
                while position not in done:
                    while waiting and len(running) < jobs:
                        number, entry = waiting.popleft()
                        running[number] = _Child.start(entry, data_dir, Path(folder) / str(number), limit, memory)
                    left = min(child.left() for child in running.values())
                    wait([child.link for child in running.values()], timeout=min(max(left, 0.0), _POLL))
                    done |= {n: report for n, child in running.items() if (report := child.look()) is not None}
                    running = {n: child for n, child in running.items() if n not in done}
                yield done.pop(position)
        finally:
            for child in running.values():
                child.kill()


@dataclass
class _Child:
    """A process that checks one component, and what it told so far."""

    entry: Entry
    limit: float
    memory: int
    process: BaseProcess
    link: Connection
    trace: Path
    printed: Printed
    began: float = field(default_factory=time.monotonic)
    started: bool = False
    at: tuple[str, str] = _IMPORT
    outcomes: list[Outcome] = field(default_factory=list)

    @classmethod
    def start(cls, entry: Entry, data_dir: Path | None, trace: Path, limit: float, memory: int) -> _Child:
        """A process at work."""
        context = get_context("forkserver")
        ours, theirs = context.Pipe(duplex=False)
        heard, said = context.Pipe(duplex=False)
        work = entry.to_json(), data_dir, theirs, said, str(trace), dict(os.environ)
        process = context.Process(target=_work, args=work, name=entry.name)
        process.start()
        theirs.close()
        said.close()
        return cls(entry, limit, memory, process, ours, trace, Printed(heard))

    def left(self) -> float:
        """Seconds until its time is up."""
        return (self.limit if self.started else _START) - (time.monotonic() - self.began)

    def look(self) -> Report | None:
        """The report where it has ended or its time is up, with what it printed."""
        report = self._look()
        if report is None:
            return None
        self.printed.settle(_LAST_WORDS)
        return replace(report, lines=self.printed.lines, printed=self.printed.last)

    def _look(self) -> Report | None:
        """Read what it tells; the report where it has ended or its time is up."""
        try:
            while self.link.poll():
                what, value = self.link.recv()
                if what == "report":
                    self.process.join()
                    return Report.from_json(value)
                if what == "starts":
                    self.began, self.started = time.monotonic(), True
                elif what == "begins":
                    self.at = value
                else:
                    self.outcomes.append(value)
        except (EOFError, OSError):
            self.process.join()
            return self._failed(self._death())
        if held(self.process.pid or 0) > self.memory:
            where = self._place()
            self.kill()
            return self._failed(
                f"the component's checks took more than {size_text(self.memory)} of memory, and were stopped in this "
                f"one{where}: something is kept from batch to batch or from call to call, or is far too large for toy "
                "data (give smaller settings in `probes`, or more with --memory)"
            )
        if self.left() > 0:
            return None
        where = self._place()
        self.kill()
        return self._failed(
            f"the component's checks did not end within {self.limit:g} s, and were stopped in this one{where}: an "
            "endless loop, or too much work for toy data (give smaller settings in `probes`, or a longer --timeout)"
        )

    def kill(self) -> None:
        """End it and what it started."""
        with suppress(psutil.Error):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    child.kill()
        self.process.kill()
        self.process.join()

    def _failed(self, why: str) -> Report:
        outcome = Outcome(self.at[0], self.at[1], "failed", (why,))
        seconds = time.monotonic() - self.began
        return Report(self.entry.kind, self.entry.name, (*self.outcomes, outcome), seconds)

    def _death(self) -> str:
        code = self.process.exitcode or 0
        if code >= 0:
            return f"the process ended with exit code {code} in this check: something calls os._exit, or crashed"
        with suppress(ValueError):
            name = signal.Signals(-code).name
            return f"the process died of {name} in this check: native code crashed, or memory ran out"
        return f"the process died of signal {-code} in this check"

    def _place(self) -> str:
        """`` (file.py:LINE)`` where it is at the moment: in the component's file, else in any plugin's; or nothing."""
        with suppress(OSError, TypeError):
            os.kill(self.process.pid or 0, signal.SIGUSR1)
            time.sleep(_LOOK)
        with suppress(OSError):
            frames = _FRAME.findall(self.trace.read_text(encoding="utf-8", errors="replace"))
            own = [frame for frame in frames if frame[0] == self.entry.file]
            others = [f for f in frames if not f[0].startswith((_CORE, "<")) and "/lib/python" not in f[0]]
            for file, line in [*own, *others][:1]:
                return f" ({Path(file).name}:{line})"
        return ""


def _work(
    entry: dict[str, Any],
    data_dir: Path | None,
    link: Connection,
    printed: Connection,
    trace: str,
    environ: dict[str, str],
) -> None:
    """In the process: check a component and tell of it."""
    from harness.engine.worker import begin
    from harness.registry.discovery import load_one
    from harness.testing.run import check_component

    os.environ.clear()
    os.environ.update(environ)  # the server's may be older
    print_to(printed)  # not to the terminal, whose verdict it would drown
    link.send(("starts", None))
    with Path(trace).open("w", encoding="utf-8") as file:
        faulthandler.register(signal.SIGUSR1, file=file)
        begin(None)
        try:
            cls = load_one(Entry.from_json(entry))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            report = Report(entry["kind"], entry["name"], (Outcome(*_IMPORT, "failed", (problem,)),))
        else:
            report = check_component(cls, data_dir, tell=link.send)
        link.send(("report", report.to_json()))
