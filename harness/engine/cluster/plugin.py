"""What runs inside a Dask worker: a plugin that keeps one agent for a run, and the task that hands it a stage."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from distributed import WorkerPlugin, get_worker

from harness.engine.cluster.agent import Hello, Order, Run, Start
from harness.engine.contract import Report
from harness.store import Failure, Stage

_LOOK: Final = 0.5  # seconds between two looks whether a stage is still wanted
_PATIENCE: Final = 5.0  # seconds that an agent gets to end its processes
_PROGRAM: Final = "import sys; from harness.engine.cluster.agent import main; main(int(sys.argv[1]))"


def run_stage(plugin: str, key: str, stage: Stage) -> Report:
    """The Dask task of a stage: never raises for what happens to the stage."""
    worker = get_worker()
    found: StagePlugin | None = worker.plugins.get(plugin)
    if found is None:
        return Report(Failure("killed", "the run has ended on this worker"), {}, str(worker.name))
    return found.run(stage, lambda: _wanted(worker, key))


def introduce(plugin: str, dask_worker: Any) -> Hello:
    """Called on every worker at the start of a run: start the agent and let it look around."""
    found: StagePlugin = dask_worker.plugins[plugin]
    return found.hello()


def _wanted(worker: Any, key: str) -> bool:
    """Whether a running task was neither cancelled nor orphaned, and its worker is not about to close."""
    if worker.status.name not in ("running", "paused", "closing_gracefully"):
        return False
    task = worker.state.tasks.get(key)
    return task is not None and task.state not in ("cancelled", "released", "forgotten")


class StagePlugin(WorkerPlugin):  # type: ignore[misc]
    """Keeps the agent of one run on one Dask worker; it is started when first needed, and again when it is gone."""

    idempotent = True

    def __init__(self, order: Order) -> None:
        self.order = order

    def setup(self, worker: Any) -> None:
        """Note where we are; starts nothing."""
        self._name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{worker.name}").strip("-")[-80:] or "worker"
        self._jobs = int(worker.state.nthreads)
        self._lock = threading.Lock()
        self._agent: _Agent | None = None
        self._closed = False

    async def teardown(self, worker: Any) -> None:
        """End the agent and everything that it runs."""
        del worker
        self._closed = True
        if (agent := self._agent) is not None:
            await asyncio.to_thread(agent.close)

    def hello(self) -> Hello:
        """The agent's greeting."""
        agent = self._present()
        return Hello(["it is about to close"], "") if agent is None else agent.hello

    def run(self, stage: Stage, wanted: Callable[[], bool]) -> Report:
        """Run a stage; end the agent as soon as nobody wants the stage any more."""
        agent = self._present()
        if agent is None:
            return Report(Failure("killed", "the run has ended on this worker"), {}, self._name)
        if agent.hello.complaints:
            return Report(Failure("killed", f"{self._name}: {'; '.join(agent.hello.complaints)}"), {}, self._name)
        future = agent.submit(stage)
        while not wait([future], timeout=_LOOK).done:
            if not wanted():  # nothing cancels a single stage: the run is over, or the worker closes
                agent.close()
        report = future.result()
        return replace(report, worker=f"{self._name} {report.worker}".strip())

    def _present(self) -> _Agent | None:
        with self._lock:
            if self._closed:
                return None
            if self._agent is None or not self._agent.alive:
                self._agent = _Agent(Start(self.order, self._jobs, self._name))
            return self._agent

    def __getstate__(self) -> dict[str, Any]:
        return {"order": self.order}


class _Agent:
    """The Dask worker's end of an agent."""

    def __init__(self, start: Start) -> None:
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Report]] = {}
        self._lock = threading.Lock()
        self._line, theirs = multiprocessing.Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=_environment(start.order),
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in a terminal is for the run, not for its stages
            )
        self.hello = self._greet(start)
        self.alive = not self.hello.complaints
        if self.alive:
            threading.Thread(target=self._listen, name="bench-agent", daemon=True).start()
        else:
            self.close()

    def _greet(self, start: Start) -> Hello:
        try:
            self._line.send(start)
            hello: Hello = self._line.recv()
        except (EOFError, OSError):
            return Hello(["bench cannot be started there, see the worker's own output"], "")
        return hello

    def submit(self, stage: Stage) -> Future[Report]:
        """Run a stage; the future holds a report even when the agent dies."""
        number, future = next(self._numbers), Future[Report]()
        self._waiting[number] = future
        try:
            with self._lock:
                self._line.send(Run(number, stage))
        except OSError:
            self._lose()
        if not self.alive:
            self._lose()
        return future

    def close(self) -> None:
        """End the agent with everything that it runs."""
        self.alive = False
        with suppress(OSError), socket.socket(fileno=os.dup(self._line.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the thread that listens
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._lose()

    def _listen(self) -> None:
        try:
            while True:
                number, report = self._line.recv()
                if (future := self._waiting.pop(number, None)) is not None:
                    future.set_result(report)
        except (EOFError, OSError):
            self.alive = False
            self._process.wait()
            self._lose()

    def _lose(self) -> None:
        for number in list(self._waiting):
            if (future := self._waiting.pop(number, None)) is not None:
                future.set_result(Report(Failure("killed", "the process that runs a worker's stages died")))


def _environment(order: Order) -> dict[str, str]:
    """The Dask worker's own, with its module path; without what its nanny sets to save memory at the cost of time."""
    kept = {name: value for name, value in os.environ.items() if name != "MALLOC_TRIM_THRESHOLD_"}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **order.environment}
