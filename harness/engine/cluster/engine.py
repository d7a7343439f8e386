"""The Dask engine: every stage is a task of a Dask cluster."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.engine.cluster.agent import Order
from harness.engine.cluster.connection import Cluster
from harness.engine.contract import Job, Report
from harness.engine.failures import failure_of
from harness.engine.processes import PRELOAD
from harness.errors import UserError
from harness.store import Failure, Stage

_log = logging.getLogger(__name__)
_BEAT: Final = 0.5  # seconds between two looks at the cluster's state
_RECOUNT: Final = 5.0  # seconds between two counts of the workers
_QUIET: Final = 1.0  # seconds without a scheduler before anything is said
_PASSING: Final = ("CancelledError", "FutureCancelledError", "CommClosedError", "TimeoutError")
_FETCH: Final = 10.0  # seconds to fetch a report
_ARRIVAL: Final = 30.0  # seconds that a network file system may take to show what a worker has written


@dataclass(eq=False)
class _Task:
    """A stage that was submitted and whose report is not out yet."""

    stage: Stage
    report: Future[Report]
    remote: Any = None
    arriving: Report | None = None
    arrived: float = 0.0


class Dask:
    """Stages as tasks of a Dask cluster, run there by the process engine beside each worker.

    A stage that ends its own process is reported by the worker as the local pool reports it. Dask runs the stages of a
    lost worker elsewhere. When the scheduler is lost, what was running is submitted again once it is back.

    Args:
        cluster: opened at the first start and left open, for engines to come; whoever made it closes it.
        timeout: seconds per stage, the start of its process not counted.
        memory: bytes of resident memory per stage's process.
        log: a file; what workers print in stages goes beside it, a file for each.
        preload: modules that are loaded once on each worker for all its stages.
    """

    in_process = False

    def __init__(
        self,
        cluster: Cluster,
        timeout: float | None = None,
        memory: int | None = None,
        log: Path | None = None,
        preload: Sequence[str] = PRELOAD,
    ) -> None:
        self._cluster = cluster
        self._limits = timeout, memory
        self._preload = tuple(preload)
        self._log = log
        self._attempts = itertools.count(1)
        self._tasks: set[_Task] = set()
        self._lock = threading.RLock()
        self._gone: Failure | None = None
        self._down: float | None = None
        self._told = False
        self._empty: float | None = None
        self._counted = 0.0

    @property
    def slots(self) -> int:
        """How many stages to keep submitted."""
        return self._cluster.slots

    @property
    def device_slots(self) -> int:
        """None of their own: the profile's resources say where stages of a kind run."""
        return 0

    def start(self, job: Job) -> None:
        """Take the job, and open the cluster.

        Raises:
            UserError: the cluster or its workers cannot do this run's work.
        """
        timeout, memory = self._limits
        logs = None if self._log is None else self._log.parent
        self._cluster.open(Order(job, timeout, memory, logs, preload=self._preload))
        self._counted = time.monotonic()

    def submit(self, stage: Stage) -> Future[Report]:
        """Run a stage on the cluster."""
        task = _Task(stage, Future())
        if self._gone is not None:
            task.report.set_result(Report(self._gone))
            return task.report
        with self._lock:
            self._tasks.add(task)
        self._send(task)
        return task.report

    def tick(self) -> float | None:
        """Notice a lost scheduler, lost workers and artifacts that have arrived. Limits are the workers' business."""
        if self._gone is not None:
            return None
        for task in self._open_tasks():
            if task.arriving is not None:
                self._arrive(task)
        self._watch_connection()
        if self._down is None and time.monotonic() - self._counted > _RECOUNT:
            self._watch_workers()
        return _BEAT

    def kill(self) -> None:
        """End every running stage on every worker."""
        self._give_up(Failure("killed", "the run was interrupted"))
        self._cluster.end_stages()

    def close(self) -> None:
        """Forget what is left; the cluster stays open."""
        self._give_up(Failure("killed", "the run ended"))

    def _open_tasks(self) -> list[_Task]:
        with self._lock:
            return list(self._tasks)

    def _send(self, task: _Task) -> None:
        from harness.engine.cluster.plugin import run_stage

        stage, cluster = task.stage, self._cluster
        key = f"{stage.kind}-{stage.key}-{cluster.name.removeprefix('bench-')}.{next(self._attempts)}"
        needs = cluster.profile.resources.get(stage.kind)
        try:
            remote = cluster.client.submit(
                run_stage, cluster.name, key, stage, key=key, pure=False, resources=dict(needs) if needs else None
            )
        except Exception:  # the connection was lost a moment ago; it is submitted again when it is back
            self._lose_connection()
            return
        task.remote = remote
        remote.add_done_callback(lambda done: self._done(task, done))

    def _done(self, task: _Task, remote: Any) -> None:
        """Called in a thread of Dask's when a task has ended in any way."""
        if task.remote is not remote or task.report.done():
            return
        report = _report_of(remote)
        if report is None and _is_lost(remote):
            self._lose_connection()
        elif report is None:
            remote.add_done_callback(lambda done: self._done(task, done))
        elif report.failure is None and not self._visible(task.stage):
            task.arrived = time.monotonic()
            task.arriving = report
        else:
            self._finish(task, report)

    def _arrive(self, task: _Task) -> None:
        report = task.arriving
        if report is not None and (self._visible(task.stage) or time.monotonic() - task.arrived > _ARRIVAL):
            self._finish(task, report)

    def _visible(self, stage: Stage) -> bool:
        """Whether this machine sees the artifacts; listing the folder makes a network file system look anew."""
        store = self._cluster.store
        if store is None:
            return True
        for key in (stage.key, *stage.outputs):
            if not store.has(key):
                with suppress(OSError):
                    os.listdir(store.artifact_folder(key).parent)  # noqa: PTH208 (read for its effect)
                return store.has(key)
        return True

    def _finish(self, task: _Task, report: Report) -> None:
        with self._lock:
            if task not in self._tasks:
                return
            self._tasks.discard(task)
        task.report.set_result(report)

    def _lose_connection(self) -> None:
        with self._lock:
            if self._down is None:
                self._down = time.monotonic()
                self._told = False

    def _watch_connection(self) -> None:
        if self._cluster.client.status != "running":
            self._lose_connection()
        if self._down is None:
            return
        self._tell_of_loss(time.monotonic() - self._down)
        if self._cluster.reconnect() and self._resume():
            return
        if time.monotonic() - self._down > self._cluster.profile.patience:
            text = f"the scheduler of {self._cluster.profile.title} was lost for {self._cluster.profile.patience:.0f} s"
            self._give_up(Failure("killed", text))

    def _tell_of_loss(self, seconds: float) -> None:
        """Once, and not at once: Ctrl-C reaches a cluster of our own and this process at the same time."""
        if seconds > _QUIET and not self._told:
            self._told = True
            patience = self._cluster.profile.patience
            _log.warning("lost %s; waiting up to %.0f s for it", self._cluster.profile.title, patience)

    def _resume(self) -> bool:
        """Submit again what the lost scheduler had; false where it takes nothing yet."""
        try:
            self._cluster.register()
        except (UserError, OSError, RuntimeError):
            return False  # lost again; the next look tries once more
        self._down = None
        lost = [task for task in self._open_tasks() if task.arriving is None and _is_lost(task.remote)]
        _log.warning("%s is back; what was running runs again (%d)", self._cluster.profile.title, len(lost))
        for task in lost:
            self._send(task)
        return True

    def _watch_workers(self) -> None:
        """Give up when no worker has been there for long."""
        now = time.monotonic()
        self._counted = now
        if self._cluster.count():
            self._empty = None
            return
        self._empty = self._empty or now
        if now - self._empty > self._cluster.profile.patience:
            text = f"{self._cluster.profile.title} has had no worker for {self._cluster.profile.patience:.0f} s"
            self._give_up(Failure("killed", text))

    def _give_up(self, failure: Failure) -> None:
        """Every stage that runs, or comes later, gets this failure."""
        self._gone = failure
        for task in self._open_tasks():
            if task.remote is not None:
                with suppress(Exception):
                    task.remote.release()
            self._finish(task, Report(failure))


def _is_lost(remote: Any) -> bool:
    return remote is None or remote.status in ("cancelled", "lost")


def _report_of(remote: Any) -> Report | None:
    """The report of a Dask task that has ended; None where the scheduler was lost, or runs it again.

    Dask runs a task again when its worker dies before the result has left it.
    """
    if _is_lost(remote):
        return None
    try:
        report: Report = remote.result(timeout=_FETCH)
    except Exception as error:
        name = type(error).__name__
        if name in _PASSING or remote.status not in ("error", "finished"):
            return None
        if name == "KilledWorker":
            return Report(
                Failure("killed", f"{getattr(error, 'allowed_failures', 0) + 1} Dask workers died running it")
            )
        return Report(failure_of(error))
    return report
