"""Run stages and measure them: in a worker process, or in this one for the inline engine."""

from __future__ import annotations

import re
import resource
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pkgutil import resolve_name
from typing import Any, Self

from harness.engine.contract import Job, StageReport
from harness.engine.failures import failure_of, spoils_device
from harness.engine.process_state import limit_threads


def work(line: Connection, job: Job, worker: str, preload: Sequence[str] = (), idle: float | None = None) -> None:
    """Run the stages that come over the line and answer with a report each; None first, when it is ready.

    Args:
        worker: its name, for people.
        preload: modules to load before it is ready.
        idle: seconds without a stage after which it leaves.
    """
    with suppress(Exception):  # loaded here, so that the clock of the first stage does not include it
        for module in preload:
            import_module(module)
        resolve_name(job.body)
    line.send(None)
    while line.poll(idle) and (stage := line.recv()) is not None:
        with Attempt(worker) as attempt:
            attempt.facts = dict(resolve_name(job.body)(stage, job.context) or {})
        try:
            line.send(attempt.report)
        except OSError:
            raise
        except Exception as error:  # what cannot be pickled
            line.send(StageReport(failure_of(error), {}, worker))


class Meter:
    """Measure a block: ``with Meter() as meter: ...``, then ``meter.reading()``.

    On Linux the peak is that of the block: the kernel's high-water mark is put back to the present use first.
    Elsewhere it is the peak of the process so far.
    """

    def __enter__(self) -> Self:
        _reset_peak()
        self._wall = time.perf_counter()
        self._cpu = time.process_time()
        return self

    def __exit__(self, *_: Any) -> bool | None:
        self._wall = time.perf_counter() - self._wall
        self._cpu = time.process_time() - self._cpu
        self._peak = _peak()
        return None

    def reading(self) -> dict[str, Any]:
        """``wall`` and ``cpu`` in seconds, ``peak_rss`` in bytes."""
        return {"wall": self._wall, "cpu": self._cpu, "peak_rss": self._peak}


class Attempt(Meter):
    """Measure a block on one thread and report what happened in it: ``with Attempt(worker) as attempt: ...``.

    Every exception but an interrupt ends in the report.

    Attributes:
        facts: what the block adds to the report's detail.
        report: complete when the block has ended.
    """

    report: StageReport

    def __init__(self, worker: str = "") -> None:
        self._worker = worker
        self.facts: dict[str, Any] = {}

    def __enter__(self) -> Self:
        limit_threads()  # the stage before may have changed it, or loaded torch
        return super().__enter__()

    def __exit__(self, *raised: Any) -> bool | None:
        super().__exit__(*raised)
        error = raised[1]
        if isinstance(error, KeyboardInterrupt):
            return False
        if error is None:
            self.report = StageReport(None, {**self.reading(), **self.facts}, self._worker)
            return False
        spent = {"spent": True} if spoils_device(error) else {}  # any exception: a plugin may call sys.exit
        self.report = StageReport(failure_of(error), {**self.reading(), **spent}, self._worker)
        return True


def _reset_peak() -> None:
    with suppress(OSError), open("/proc/self/clear_refs", "wb", buffering=0) as file:  # noqa: PTH123 (on the hot path)
        file.write(b"5")  # 5: the high-water mark only; see proc(5)


def _peak() -> int:
    """Peak resident memory in bytes; ``ru_maxrss`` would include the peak inherited at the fork."""
    with suppress(OSError), open("/proc/self/status", "rb", buffering=0) as file:  # noqa: PTH123 (on the hot path)
        found = re.search(rb"VmHWM:\s*(\d+) kB", file.read())
        if found:
            return int(found[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
