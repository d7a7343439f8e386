"""The Dask engine: every stage is a task of a Dask cluster."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from harness.engine.cluster.connection import Cluster
from harness.engine.cluster.facts import Order
from harness.engine.cluster.profile import QUEUES, Profile, need
from harness.engine.contract import Job, StageReport
from harness.engine.failures import failure_of
from harness.engine.processes import PRELOAD
from harness.store import Failure, Stage

_BEAT: Final = 0.5  # seconds between two looks at the cluster's state
_RECOUNT: Final = 5.0  # seconds between two counts of the workers
_PASSING: Final = ("CancelledError", "FutureCancelledError", "CommClosedError", "TimeoutError")
_FETCH: Final = 10.0  # seconds to fetch a report


class Dask:
    """Stages as tasks of a Dask cluster, run there in processes beside each worker.

    A stage that ends its own process is reported by the worker as the local pool reports it. Dask runs the stages of a
    lost worker elsewhere. When the scheduler is lost, what is left fails, and the next run takes it up from the store.

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
        self._remotes: dict[Future[StageReport], Any] = {}  # Dask's future of each report that is not out yet
        self._lock = threading.RLock()
        self._gone: Failure | None = None
        self._scheduler_lost = False
        self._empty: float | None = None
        self._counted = 0.0

    @property
    def slots(self) -> int:
        """Number of stages to keep submitted."""
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

    def submit(self, stage: Stage) -> Future[StageReport]:
        """Run a stage on the cluster."""
        from harness.engine.cluster.plugin import run_stage

        report, cluster = Future[StageReport](), self._cluster
        if self._gone is not None:
            report.set_result(StageReport(self._gone))
            return report
        key, needs = f"{stage.kind}-{uuid.uuid4().hex}", cluster.profile.resources.get(stage.kind)
        try:
            remote = cluster.client.submit(
                run_stage, cluster.name, key, stage, key=key, pure=False, resources=dict(needs) if needs else None
            )
        except Exception:  # the connection was lost a moment ago
            self._scheduler_lost, remote = True, None
        with self._lock:
            self._remotes[report] = remote
        if remote is not None:
            remote.add_done_callback(lambda done: self._done(report, done))
        return report

    def tick(self) -> float | None:
        """Give up where the scheduler or all workers are lost. Limits are the workers' business."""
        if self._gone is not None:
            return None
        title = self._cluster.profile.title
        if self._scheduler_lost or self._cluster.client.status != "running":
            self._give_up(Failure("killed", f"the scheduler of {title} was lost; the same command goes on from here"))
        elif time.monotonic() - self._counted > _RECOUNT:
            self._watch_workers()
        return _BEAT

    def kill(self) -> None:
        """End every running stage on every worker."""
        self._give_up(Failure("killed", "the run was interrupted"))
        self._cluster.end_stages()

    def close(self) -> None:
        """Forget what is left; the cluster stays open."""
        self._give_up(Failure("killed", "the run ended"))

    def _done(self, report: Future[StageReport], remote: Any) -> None:
        """Take the end of a task; called in a thread of Dask's."""
        result = None if _is_lost(remote) else _report_of(remote)
        if result is not None:
            self._finish(report, result)
        elif _is_lost(remote):
            self._scheduler_lost = True
        elif not report.done():  # it runs again
            remote.add_done_callback(lambda done: self._done(report, done))

    def _finish(self, report: Future[StageReport], result: StageReport) -> None:
        with self._lock:
            if report in self._remotes:
                del self._remotes[report]
                report.set_result(result)

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
        """Fail every stage that runs or comes later."""
        self._gone = failure
        with self._lock:
            remotes = dict(self._remotes)
        for report, remote in remotes.items():
            if remote is not None:
                with suppress(Exception):
                    remote.release()
            self._finish(report, StageReport(failure))


def _is_lost(remote: Any) -> bool:
    return remote.status in ("cancelled", "lost")


def _report_of(remote: Any) -> StageReport | None:
    """Return the report of a Dask task that has ended; None where the scheduler is lost, or runs it again.

    Dask runs a task again when its worker dies before the result has left it.
    """
    try:
        report: StageReport = remote.result(timeout=_FETCH)
    except Exception as error:
        name = type(error).__name__
        if name in _PASSING or remote.status not in ("error", "finished"):
            return None
        if name == "KilledWorker":
            return StageReport(
                Failure("killed", f"{getattr(error, 'allowed_failures', 0) + 1} Dask workers died running it")
            )
        return StageReport(failure_of(error))
    return report


def make_dask(
    cluster: Profile | Cluster | None, *, jobs: int | None, timeout: float | None, memory: int | None, log: Path | None
) -> Dask:
    """Return a Dask engine, not yet started; its cluster is not opened before the first stage.

    Raises:
        UserError: a package of the extra ``cluster`` is missing.
    """
    opened = cluster if isinstance(cluster, Cluster) else Cluster(cluster or Profile(), jobs)
    need("distributed")
    if opened.profile.kind in QUEUES:
        need("dask_jobqueue")
    return Dask(opened, timeout, memory, log)
