"""The Dask engine: each stage is a task of a Dask cluster, which runs it in a process beside the Dask worker."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import time
import uuid
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.engine.cluster import QUEUES, Profile, first_line, need, start_cluster
from harness.engine.contract import Engine, Job, StageReport
from harness.engine.failures import failure_of
from harness.engine.process_state import interrupts_held_back
from harness.engine.processes import Slot
from harness.engine.provenance import machine, versions
from harness.errors import BenchError, UserError
from harness.store import Failure, Stage

if TYPE_CHECKING:
    from harness.engine.choice import EngineOptions

_log = logging.getLogger(__name__)
_BEAT: Final = 0.5  # seconds between two looks at the cluster's state, or at a stage in its worker
_RECOUNT: Final = 5.0  # seconds between two counts of the workers
_RUSH: Final = 10.0  # seconds for a call that must not hold up the run
_FIRST_WORD: Final = 30.0  # seconds without a worker until the user is told
_IDLE: Final = 60.0  # seconds without a stage after which a process beside a worker leaves


@dataclass(frozen=True)
class Order:
    """Settings of a run that a worker needs beside the stage.

    Attributes:
        run: name of the run: its stages share the processes beside a worker.
        job: as for every worker, with paths as the workers see them.
        timeout, memory: limits of a stage, in seconds and bytes.
        logs: folder for what is printed in stages, a file per Dask worker; their own output where absent.
        versions: of Python and the packages where the run was started.
    """

    run: str
    job: Job
    timeout: float | None
    memory: int | None
    logs: Path | None
    versions: Mapping[str, str]


class Dask(Engine):
    """Stages as tasks of a Dask cluster.

    A stage that ends its own process is reported by the worker as the local pool reports it. Dask runs the stages of a
    lost worker elsewhere. When the scheduler is lost, the run ends, and the next one goes on from the store.
    The cluster is found or started at the first start and serves until :meth:`close`. The profile's resources say where
    stages of a kind run, so there are no slots for devices.

    Args:
        options: which cluster, and limits. ``jobs``: most stages at a time; for ``local`` also the number of workers
            where the profile gives none.
        log: a file; what workers print in stages goes beside it, a file for each.
    """

    def __init__(self, options: EngineOptions, log: Path | None = None) -> None:
        self._profile, self._jobs = options.cluster or Profile(), options.jobs
        need("dask_jobqueue" if self._profile.kind in QUEUES else "distributed")
        self._limits = options.timeout, options.memory
        self._logs = None if log is None else log.parent
        self._cluster: Any = None
        self._client: Any = None
        self._threads = 0
        self._counted = 0.0
        self._seen = 0.0
        self._lost = False
        self._remotes = set[Future[StageReport]]()
        self._set_slots()

    def start(self, job: Job) -> None:
        """Take the job; find or start the cluster, and make sure that its workers can do the work.

        Raises:
            UserError: there is no such cluster, no worker comes, or a worker cannot do this run's work.
        """
        if self._client is not None:
            return
        self._order = self._order_of(job)
        try:
            self._connect()
            self._await_workers()
            self._check_workers()
        except OSError as error:  # those of Dask's connections
            raise UserError(f"{self._profile.title} was lost when the run started: {error}") from None
        except (ImportError, AttributeError) as error:
            raise UserError(
                f"the workers of {self._profile.title} cannot load bench ({error}); install the same version of "
                "equad-bench[cluster] there"
            ) from None

    def submit(self, stage: Stage) -> Future[StageReport]:
        """Run a stage on the cluster."""
        report, needs = Future[StageReport](), self._profile.resources.get(stage.kind)
        try:
            executor = self._client.get_executor(pure=False, resources=dict(needs) if needs else None)
            remote = executor.submit(run_stage, self._order, stage)
        except Exception:  # of any class, where the connection was lost a moment ago
            self._lost = True
            return report
        self._remotes.add(remote)
        remote.add_done_callback(partial(self._done, report))
        return report

    def tick(self) -> float | None:
        """Give up where the scheduler or all workers are lost. Limits are the workers' business.

        Raises:
            BenchError: it is so; the store has what is finished.
        """
        title, patience = self._profile.title, self._profile.patience
        if self._lost or self._client.status != "running":
            raise BenchError(f"the scheduler of {title} was lost; the same command goes on from here")
        due = time.monotonic() - self._counted > _RECOUNT
        if due and not self._count() and time.monotonic() - self._seen > patience:
            raise BenchError(f"{title} has had no worker for {patience:.0f} s; the same command goes on from here")
        return _BEAT

    def kill(self) -> None:
        """End every running stage on every worker."""
        for remote in list(self._remotes):
            remote.cancel()

    def close(self) -> None:
        """Let go of the cluster; one that was started here ends."""
        self.kill()
        for part in (self._client, self._cluster):
            if part is not None:
                with suppress(Exception):
                    part.close(timeout=_RUSH / 2)
        self._client = self._cluster = None

    def _order_of(self, job: Job) -> Order:
        """Return the order for a job, with paths as the workers see them."""
        store, data, logs = job.context.store, self._profile.data, None
        here, there = store.root, Path(self._profile.store or store.root)
        if self._logs is not None and self._logs.is_relative_to(here):
            logs = there / self._logs.relative_to(here)
        run = f"bench-{uuid.uuid4().hex[:12]}"
        folder = job.context.data_dir if data is None else Path(data)
        job = replace(job, context=replace(job.context, store=type(store)(there), data_dir=folder))
        return Order(run, job, *self._limits, logs, versions())

    def _connect(self) -> None:
        with interrupts_held_back():
            self._cluster = start_cluster(self._profile, self._jobs)
        place = self._cluster or self._profile.address
        try:
            wait_for = min(self._profile.patience, 60.0)
            self._client = need("distributed").Client(place, timeout=wait_for, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{self._profile.title} does not answer: {first_line(error)}") from None

    def _await_workers(self) -> None:
        """Wait for the first worker. A task that waits makes an adaptive cluster start one."""
        patience, title = self._profile.patience, self._profile.title
        first = self._client.submit(int, pure=False)
        with suppress(TimeoutError):
            first.result(timeout=min(patience, _FIRST_WORD))
        if not first.done() and patience > _FIRST_WORD:
            _log.warning("waiting for a worker of %s", title)
            with suppress(TimeoutError):
                first.result(timeout=patience - _FIRST_WORD)
        if not first.done():
            raise UserError(
                f"{title} has had no worker for {patience:.0f} s; look at what the workers print, or start some with "
                f"`dask worker {self._client.scheduler.address}` ('wait' in the profile changes how long)"
            )
        self._count()

    def _check_workers(self) -> None:
        found = self._client.run(lacking, self._order)
        problems = [f"{worker}: {text}" for worker, text in sorted(found.items()) if text]
        workers = self._client.scheduler_info()["workers"].values()
        for kind, needs in self._profile.resources.items():
            for name, amount in needs.items():
                most = max((worker["resources"].get(name, 0) for worker in workers), default=0)
                if most < amount:  # such stages would wait for ever
                    problems.append(
                        f"a stage of kind '{kind}' takes {name}={amount:g}; a worker offers at most {most:g}"
                    )
        if problems:
            head = f"workers of {self._profile.title} cannot do this run's work:"
            raise UserError("\n  ".join([head, *problems]))

    def _done(self, report: Future[StageReport], remote: Future[StageReport]) -> None:
        """Take the end of a task; called in a thread of Dask's."""
        self._remotes.discard(remote)
        if remote.cancelled():  # by us, where nobody waits for it any more, or with the scheduler
            self._lost = True
        elif (error := remote.exception()) is None:
            report.set_result(remote.result())
        elif type(error).__name__ == "KilledWorker":
            deaths = getattr(error, "allowed_failures", 0) + 1
            report.set_result(StageReport(Failure("killed", f"{deaths} Dask workers died running it")))
        else:
            report.set_result(StageReport(failure_of(error)))

    def _count(self) -> int:
        """Ask how many threads the workers have now; the last known number where the scheduler does not answer."""
        with suppress(Exception):
            self._threads = sum(self._client.sync(self._client.scheduler.ncores, callback_timeout=_RUSH).values())
        self._counted = time.monotonic()
        if self._threads:
            self._seen = self._counted
        self._set_slots()
        return self._threads

    def _set_slots(self) -> None:
        """Keep as many stages submitted as the workers have threads, or the largest cluster may have."""
        threads = max(1, self._threads, self._profile.most_threads)
        self.slots = min(threads, self._jobs or threads)


def lacking(order: Order) -> str:
    """Say why this worker cannot do a run's work: other versions, or another store; empty where it can."""
    here = versions()
    found = [
        f"{name} {here.get(name, 'is missing')} instead of {version}"
        for name, version in order.versions.items()
        if here.get(name) != version
    ]
    store = order.job.context.store.root
    if not os.access(store, os.W_OK):
        found.append(f"cannot write to the store at {store}")
    elif order.logs is not None and not order.logs.is_dir():
        found.append(f"{store} is another store: it has no {order.logs}")
    return "; ".join(found)


def run_stage(order: Order, stage: Stage) -> StageReport:
    """Run a stage beside this Dask worker, and end it as soon as nobody wants it; the task of a stage.

    It does not run in the worker itself: it may hang or crash, and the worker may have loaded older code than is on
    the disk now.
    """
    from distributed import get_worker

    worker = get_worker()
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", str(worker.name)).strip("-")[-80:] or "worker"
    if reason := lacking(order):
        return StageReport(Failure("killed", f"{name}: {reason}"), {}, name)
    key = worker.get_current_task()
    idle: deque[Slot] = vars(worker).setdefault(order.run, deque())
    slot = _slot(order, name, idle)
    future = slot.submit(stage)
    while not wait([future], timeout=_BEAT).done:
        slot.over_limit(order.timeout, order.memory)
        if not (slot.condemned or _wanted(worker, key)):
            slot.condemn(Failure("killed", "the run has ended on this worker"))
    if slot.usable:
        idle.append(slot)
    else:
        slot.retire()
    report = future.result()
    return replace(report, detail={**report.detail, "machine": {"host": socket.gethostname(), **machine()}})


def _slot(order: Order, name: str, idle: deque[Slot]) -> Slot:
    """Return an idle process of the run's, or a new one."""
    with suppress(IndexError):
        while True:
            if (slot := idle.pop()).usable:
                return slot
    log = None if order.logs is None else order.logs / f"workers-{name}.log"
    # without a variable that the worker's nanny sets, which costs time
    kept = {name: value for name, value in os.environ.items() if name != "MALLOC_TRIM_THRESHOLD_"}
    environment = {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return Slot(name, order.job, log, environment=environment, idle=_IDLE)


def _wanted(worker: Any, key: str) -> bool:
    """Return True unless a running task was cancelled or orphaned, or its worker is about to close."""
    if worker.status.name not in ("running", "paused", "closing_gracefully"):
        return False
    task = worker.state.tasks.get(key)
    return task is not None and task.state not in ("cancelled", "released", "forgotten")
