"""Run stages and measure them: in a worker process, or in this one for the inline engine."""

from __future__ import annotations

import re
import resource
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Self

from harness.engine.contract import Job, StageReport
from harness.engine.failures import failure_of, spoils_device
from harness.engine.process_state import limit_threads


def work(line: Connection, job: Job, worker: str, idle: float | None = None) -> None:
    """Run the stages that come over the line and answer with a report each; None first, when it is ready.

    Args:
        worker: its name, for people.
        idle: seconds without a stage after which it leaves.
    """
    with suppress(Exception):  # loaded here, so that the clock of the first stage does not include it
        for module in job.preload:
            import_module(module)
    line.send(None)
    while line.poll(idle) and (stage := line.recv()) is not None:
        with Attempt(worker) as attempt:
            attempt.facts = job.body(stage, job.context) or {}
        try:
            line.send(attempt.report)
        except OSError:
            raise
        except Exception as error:  # what cannot be pickled
            line.send(StageReport(failure_of(error), {}, worker))


class Attempt:
    """Measure a block on one thread and report what happened in it: ``with Attempt(worker) as attempt: ...``.

    Every exception but an interrupt ends in the report. On Linux the peak of memory is that of the block: the kernel's
    high-water mark is put back to the present use first. Elsewhere it is the peak of the process so far.

    Attributes:
        facts: what the block adds to the report's detail.
        report: complete when the block has ended.
    """

    report: StageReport

    def __init__(self, worker: str = "") -> None:
        self._worker = worker
        self.facts: Mapping[str, Any] = {}

    def __enter__(self) -> Self:
        limit_threads()  # the stage before may have changed it, or loaded torch
        with suppress(OSError), open("/proc/self/clear_refs", "wb", buffering=0) as file:  # noqa: PTH123 (on the hot path)
            file.write(b"5")  # 5: the high-water mark only; see proc(5)
        self._wall = time.perf_counter()
        self._cpu = time.process_time()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        measured = {"wall": wall, "cpu": cpu, "peak_rss": _peak()}
        if error is None:
            self.report = StageReport(None, {**measured, **self.facts}, self._worker)
        elif not isinstance(error, KeyboardInterrupt):  # any exception: a plugin may call sys.exit
            spent = {"spent": True} if spoils_device(error) else {}
            self.report = StageReport(failure_of(error), {**measured, **spent}, self._worker)
        return not isinstance(error, KeyboardInterrupt)


def _peak() -> int:
    """Peak resident memory in bytes; ``ru_maxrss`` would include the peak inherited at the fork."""
    with suppress(OSError), open("/proc/self/status", "rb", buffering=0) as file:  # noqa: PTH123 (on the hot path)
        found = re.search(rb"VmHWM:\s*(\d+) kB", file.read())
        if found:
            return int(found[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
