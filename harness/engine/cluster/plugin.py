"""The part that runs inside a Dask worker: a plugin that keeps processes for stages, and the task of a stage."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import replace
from typing import Any, Final

from distributed import WorkerPlugin, get_worker

from harness.engine.cluster.facts import Order, look_around
from harness.engine.contract import StageReport
from harness.engine.provenance import machine
from harness.engine.slot import Slot
from harness.engine.supervisor import Child
from harness.store import Failure, Stage

_LOOK: Final = 0.4  # seconds between two looks whether a stage is still wanted and within its limits
_PATIENCE: Final = 5.0  # seconds for the end of a process that was killed
_IDLE: Final = 120.0  # seconds without a stage after which a process leaves; the next stage starts another


def run_stage(plugin: str, key: str, stage: Stage) -> StageReport:
    """Run a stage; the Dask task of it, which never raises for what happens to the stage."""
    worker = get_worker()
    ours: StagePlugin | None = worker.plugins.get(plugin)
    if ours is None:
        return StageReport(Failure("killed", "the run has ended on this worker"), {}, str(worker.name))
    return ours.run(stage, lambda: _wanted(worker, key))


def complaints_of(plugin: str, dask_worker: Any) -> list[str]:
    """Return what is wrong on a worker; called on each at the start of a run."""
    ours: StagePlugin | None = dask_worker.plugins.get(plugin)
    return ["its scheduler was started again meanwhile"] if ours is None else ours.complaints()


def _wanted(worker: Any, key: str) -> bool:
    """Return True unless a running task was cancelled or orphaned, or its worker is about to close."""
    if worker.status.name not in ("running", "paused", "closing_gracefully"):
        return False
    task = worker.state.tasks.get(key)
    return task is not None and task.state not in ("cancelled", "released", "forgotten")


class StagePlugin(WorkerPlugin):  # type: ignore[misc]
    """Keeps the processes that run one run's stages on one Dask worker, at most one for each of its threads.

    A stage does not run in the Dask worker itself: it may hang or crash, and the worker may have loaded older code than
    is on the disk now.
    """

    idempotent = True

    def __init__(self, order: Order) -> None:
        self.order = order

    def setup(self, worker: Any) -> None:
        """Note the worker's name; starts nothing."""
        self._name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{worker.name}").strip("-")[-80:] or "worker"
        self._lock = threading.Lock()
        self._check = threading.Lock()
        self._complaints: list[str] | None = None
        self._slots: list[Slot] = []
        self._started = 0
        self._closed = False
        self._machine = {"host": socket.gethostname(), **machine()}

    async def teardown(self, worker: Any) -> None:
        """End everything that runs."""
        del worker
        await asyncio.to_thread(self._close)

    def complaints(self) -> list[str]:
        """Return what is wrong on this worker, as a fresh process there sees it."""
        with self._check:
            if self._complaints is None:
                self._complaints = self._look_around()
            return self._complaints

    def run(self, stage: Stage, wanted: Callable[[], bool]) -> StageReport:
        """Run a stage in a process of its own; end that as soon as nobody wants the stage any more."""
        if complaints := self.complaints():
            return StageReport(Failure("killed", f"{self._name}: {'; '.join(complaints)}"), {}, self._name)
        with self._lock:
            if self._closed:
                return StageReport(Failure("killed", "the run has ended on this worker"), {}, self._name)
            slot = self._free_slot()
            future = slot.submit(stage)
        while not wait([future], timeout=_LOOK).done:
            slot.over_limit(self.order.timeout, self.order.memory)
            if not wanted() and not slot.condemned:
                slot.condemn(Failure("killed", "the run has ended on this worker"))
        report = future.result()
        return replace(
            report,
            worker=f"{self._name} {report.worker}".strip(),
            detail={**report.detail, "machine": self._machine},
        )

    def _free_slot(self) -> Slot:
        self._slots = [slot for slot in self._slots if slot.busy or slot.usable]
        idle = next((slot for slot in self._slots if slot.usable), None)
        if idle is not None:
            return idle
        self._started += 1
        order = self.order
        log = None if order.logs is None else order.logs / f"workers-{self._name}.log"
        slot = Slot(
            f"worker {self._started}",
            order.job,
            log,
            preload=order.preload,
            environment=_environment(order),
            idle=_IDLE,
        )
        self._slots.append(slot)
        return slot

    def _look_around(self) -> list[str]:
        child = Child.spawn(look_around, self.order, self._name, environment=_environment(self.order))
        try:
            complaints: list[str] = child.receive()
        except EOFError:
            return ["bench cannot be started there, see the worker's own output"]
        finally:
            child.kill()
            child.wait(_PATIENCE)
        return complaints

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            slots, self._slots = self._slots, []
        for slot in slots:
            slot.condemn(Failure("killed", "the run has ended on this worker"))
        for slot in slots:
            slot.join(_PATIENCE)

    def __getstate__(self) -> dict[str, Any]:
        return {"order": self.order}


def _environment(order: Order) -> dict[str, str]:
    """Return the Dask worker's variables with its module path; without one that its nanny sets, which costs time."""
    kept = {name: value for name, value in os.environ.items() if name != "MALLOC_TRIM_THRESHOLD_"}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **order.environment}
