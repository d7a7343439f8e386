"""One slot of the process engine: a pool of one process, which is replaced when it dies."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from multiprocessing import forkserver, resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import psutil

from harness.engine import worker
from harness.engine.contract import Job, Report
from harness.engine.failures import failure_of
from harness.engine.process_tree_memory import held
from harness.engine.stack import place_of_process
from harness.store import Failure, Stage

_LOST: Final = 255  # what the fork server's client says of a process whose exit code was lost


class Slot:
    """A worker process and the stage it runs.

    A dead process breaks its pool. As the pool has one process and one stage, the culprit is known.

    Attributes:
        name: for people.
        device: what its stages train on, where it is not for the job's context to say. The process starts a GPU at the
            first of them: it must not be forked from one that has.
        busy: whether a stage is running.
    """

    def __init__(self, name: str, job: Job, log: Path | None, *, device: str | None = None) -> None:
        self.name, self.device = name, device
        self._job = job if device is None else replace(job, context={**job.context, "device": device})
        self._spent = False
        self._verdict: Failure | None = None
        self._future: Future[Report] | None = None
        self._submitted = 0.0
        self._ready: float | None = None
        self._manager: threading.Thread | None = None
        try:
            _start_fork_server()
            context = multiprocessing.get_context("forkserver")
            before = multiprocessing.active_children()
            self._stacks, theirs = context.Pipe(duplex=False)
            with theirs:
                self._pool = ProcessPoolExecutor(
                    1, mp_context=context, initializer=worker.begin, initargs=(str(log) if log else None, theirs)
                )
                warm = self._pool.submit(worker.warm_up, self._job)  # waits until the fork server has loaded modules
        except KeyboardInterrupt:
            _kill_fork_server()
            raise
        self._process = next((child for child in multiprocessing.active_children() if child not in before), None)
        warm.add_done_callback(self._note_ready)

    @property
    def busy(self) -> bool:
        """Whether a stage is running."""
        return self._future is not None and not self._future.done()

    @property
    def usable(self) -> bool:
        """Whether another stage can be given to it: the process lives, was not condemned and has a sound device."""
        if self.busy or self.condemned or self._spent:
            return False
        return self._process is None or self._process.is_alive()

    @property
    def condemned(self) -> bool:
        """Whether the process was killed by us."""
        return self._verdict is not None

    def submit(self, stage: Stage) -> Future[Report]:
        """Run a stage; the future holds a report even when the process dies.

        Raises:
            BrokenProcessPool: the process is dead already.
        """
        self._submitted = time.monotonic()
        inner = self._pool.submit(worker.execute, self._job, stage, self.name)
        outer: Future[Report] = Future()
        self._future = outer
        inner.add_done_callback(lambda done: outer.set_result(self._report(done)))
        return outer

    def elapsed(self) -> float:
        """Seconds that the present stage has run; the start of the process is not counted."""
        return 0.0 if self._ready is None else time.monotonic() - max(self._submitted, self._ready)

    def resident(self) -> int:
        """Bytes of resident memory of the process and of those it started."""
        return 0 if self._process is None or self._process.pid is None else held(self._process.pid)

    def condemn(self, verdict: Failure, *, look: bool = False) -> None:
        """Kill the process and everything it started; its stage gets this failure.

        Args:
            look: add the line of a plugin where it is, if it tells.
        """
        self._verdict = verdict  # before the look, which may end the process: a plugin can have unset the handler
        if self._process is None or self._process.pid is None:
            return
        if look and (place := place_of_process(self._process.pid, self._stacks)):
            self._verdict = replace(verdict, reason=f"{verdict.reason} (in {place})")
        started: list[psutil.Process] = []
        with suppress(psutil.Error):
            started = psutil.Process(self._process.pid).children(recursive=True)
        with suppress(ProcessLookupError, ValueError):
            self._process.kill()  # first: a stage that waits for one of them must not end well
        for child in started:
            with suppress(psutil.Error):
                child.kill()

    def retire(self) -> None:
        """Ask the idle process to leave; does not wait."""
        # The pool forgets its thread when it is shut down, and has no public name for it.
        self._manager = getattr(self._pool, "_executor_manager_thread", None) or self._manager
        self._pool.shutdown(wait=False, cancel_futures=True)

    def join(self, seconds: float) -> None:
        """Wait for the process to leave; kill it when it takes longer."""
        if self._process is None:
            return
        self._process.join(seconds)
        if self._process.is_alive():
            self.condemn(Failure("killed", "the run ended"))

    def settle(self, seconds: float) -> None:
        """Wait for the retired pool's own thread: at its end it closes a pipe, into which Python's exit writes."""
        if self._manager is not None:
            self._manager.join(seconds)

    def _note_ready(self, warm: Future[None]) -> None:
        if not warm.cancelled() and warm.exception() is None:
            self._ready = time.monotonic()

    def _report(self, inner: Future[Report]) -> Report:
        if inner.cancelled():
            return Report(self._verdict or Failure("killed", "cancelled"), {}, self.name)
        error = inner.exception()
        if error is None:
            report = inner.result()
            self._spent = bool(report.detail.get("spent"))
            return report
        if isinstance(error, BrokenProcessPool):
            return Report(self._verdict or Failure("killed", _how_it_died(self._process)), {}, self.name)
        return Report(failure_of(error), {}, self.name)  # what could not be sent to the worker or back


def _how_it_died(process: BaseProcess | None) -> str:
    """One line on the end of a process; its exit code is at hand a moment after the pool noticed."""
    if process is not None:
        process.join(1)
    code = None if process is None else process.exitcode
    if code is None or code == _LOST:
        return "the worker process died"
    if code < 0:
        with suppress(ValueError):
            return f"the worker process died of {signal.Signals(-code).name}"
        return f"the worker process died of signal {-code}"
    return f"the worker process left with exit code {code} (something calls os._exit, or crashed)"


def prepare_fork_server(modules: Sequence[str]) -> None:
    """Say what the fork server loads before it forks; without effect once it runs."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(modules))


def _start_fork_server() -> None:
    """Start it with SIGINT held back: it and its children inherit the mask, so that Ctrl-C never reaches a worker."""
    resource_tracker.ensure_running()  # first, because starting it lifts the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _kill_fork_server() -> None:
    """So that it does not fork, after its parent has gone, a worker that was asked for before."""
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if "multiprocessing.forkserver" in " ".join(child.cmdline()):
                child.kill()
