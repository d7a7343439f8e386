"""What runs where a stage runs: in a worker process, or in this one for the inline engine."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Self

from harness.engine.contract import Job, Report
from harness.engine.failures import failure_of, spoils_device
from harness.engine.meter import Meter
from harness.engine.stack import show_stack_to
from harness.engine.threads import limit_threads
from harness.store import Stage

_LOG_MOST: Final = 64 << 20  # bytes of a log; half of them are kept when it is longer
_LOOK: Final = 0.5  # seconds between two looks at it


def begin(log: str | None, stacks: Connection | None = None) -> None:
    """Make this process a worker: Ctrl-C is the parent's business, one thread, and it dies with the parent.

    Args:
        log: a file for what is printed.
        stacks: where it writes its stack when it is asked for.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_threads()
    path = None if log is None else Path(log).absolute()  # a plugin may change the folder
    threading.Thread(target=_watch, args=(path,), name="bench-parent-watch", daemon=True).start()
    if path is not None:
        _write_to(path)
    if stacks is not None:
        show_stack_to(stacks)


def warm_up(job: Job) -> None:
    """Import the body, so that the clock of the first stage does not include it. Errors show when it is called."""
    with suppress(Exception):
        resolve(job.body)


def execute(job: Job, stage: Stage, worker: str = "") -> Report:
    """Run one stage by the job's body."""
    with Attempt(worker) as attempt:
        attempt.facts = dict(resolve(job.body)(stage, job.context) or {})
    return attempt.report


class Attempt:
    """Measure a block on one thread and report what happened in it: ``with Attempt(worker) as attempt: ...``.

    Every exception but an interrupt ends in the report.

    Attributes:
        facts: what the block adds to the report's detail.
        report: complete when the block has ended.
    """

    report: Report

    def __init__(self, worker: str = "") -> None:
        self._worker = worker
        self._meter = Meter()
        self.facts: dict[str, Any] = {}

    def __enter__(self) -> Self:
        limit_threads()  # the stage before may have changed it, or loaded torch
        self._meter.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self._meter.__exit__(kind, error, trace)
        if isinstance(error, KeyboardInterrupt):
            return False
        if error is None:
            self.report = Report(None, {**self._meter.reading(), **self.facts}, self._worker)
            return False
        spent = {"spent": True} if spoils_device(error) else {}  # any exception: a plugin may call sys.exit
        self.report = Report(failure_of(error), {**self._meter.reading(), **spent}, self._worker)
        return True


def resolve(path: str) -> Callable[..., Any]:
    """The object that ``package.module:name`` names."""
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def _watch(log: Path | None) -> None:
    """Keep the log short, and die with the parent: a killed one cannot tell its workers, but the pipe it held does."""
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is not None:
        while not connection.wait([parent.sentinel], None if log is None else _LOOK):
            if log is not None:
                _shorten(log)
        os._exit(1)


def _shorten(log: Path) -> None:
    """Cut a log that would fill the disk, whoever writes to it: the first lines stay, and new ones are added."""
    with suppress(OSError):
        if log.stat().st_size > _LOG_MOST:
            os.truncate(log, _LOG_MOST // 2)
            notice = f"[bench: over {_LOG_MOST >> 20} MiB were printed; some of it was dropped here]"
            with log.open("ab") as file:
                file.write(f"\n{notice}\n".encode())


def _write_to(log: Path) -> None:
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
