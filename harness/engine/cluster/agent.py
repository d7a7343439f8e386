"""The process beside a Dask worker in which the process engine runs the stages of one run.

It is a process of its own because a Dask worker under a nanny may have no children that Python's ``multiprocessing``
starts, because it may have loaded older code than is on the disk now, and because ending it ends all that it started.
"""

from __future__ import annotations

import os
import platform
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from harness.engine.cluster.facts import differences, facts
from harness.engine.contract import Job, Report
from harness.engine.processes import PRELOAD, Processes, available_cores
from harness.engine.provenance import cpu_model
from harness.store import Stage

_IDLE: Final = 120.0  # seconds without a stage after which it leaves; the next stage starts another
_LONGEST: Final = 5.0  # seconds between two looks at the clock


@dataclass(frozen=True)
class Order:
    """What the agents of a run are told, the same for all.

    Attributes:
        job: as for every worker, with paths as the workers see them.
        timeout, memory: limits of a stage, in seconds and bytes.
        logs: folder for what is printed in stages, a file per Dask worker; their own output where absent.
        expected: what :func:`facts` says where the run was started.
        plugin_files: single-file plugins that the run may use.
        meeting: folder in the store in which the run left the file ``token`` with ``secret`` in it, and in which each
            agent leaves a file, so that both sides know that they see the same store; ``None`` for no such check.
        secret: see ``meeting``.
        environment: variables for the agent and its processes.
        preload: modules that the agent's fork server loads once for all stages.
    """

    job: Job
    timeout: float | None = None
    memory: int | None = None
    logs: Path | None = None
    expected: Mapping[str, str] = field(default_factory=dict)
    plugin_files: Sequence[Path] = ()
    meeting: Path | None = None
    secret: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    preload: Sequence[str] = PRELOAD


@dataclass(frozen=True)
class Start:
    """First message to an agent: the order, the number of stages at a time, the name of its Dask worker."""

    order: Order
    jobs: int
    name: str


@dataclass(frozen=True)
class Run:
    """Run a stage; the answer has the same number."""

    number: int
    stage: Stage


@dataclass(frozen=True)
class Hello:
    """The answer to :class:`Start`: what is wrong here, and the file left in the meeting folder."""

    complaints: Sequence[str]
    mark: str


def main(descriptor: int) -> None:
    """Serve until the other end of the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with Connection(descriptor) as line, suppress(EOFError, OSError):
        first: Start = line.recv()
        _Agent(line, first).serve()


class _Agent:
    def __init__(self, line: Connection, start: Start) -> None:
        order = start.order
        self._line = line
        self._sending = threading.Lock()
        self._running: set[int] = set()
        self._machine = machine()
        log = None if order.logs is None else order.logs / f"workers-{start.name}.log"
        self._send(Hello(*_look_around(order, start.name)))
        self._engine = Processes(start.jobs, order.timeout, order.memory, log, preload=order.preload)
        self._engine.start(order.job)

    def serve(self) -> None:
        """Take messages and watch the limits."""
        busy = time.monotonic()
        try:
            while True:
                pause = self._engine.tick()
                if self._line.poll(_LONGEST if pause is None else min(pause, _LONGEST)):
                    self._take(self._line.recv())
                if self._running:
                    busy = time.monotonic()
                elif time.monotonic() - busy > _IDLE:
                    return
        finally:
            self._engine.kill()
            self._engine.close()

    def _take(self, message: Run) -> None:
        future = self._engine.submit(message.stage)
        self._running.add(message.number)
        future.add_done_callback(lambda done: self._answer(message.number, done.result()))

    def _answer(self, number: int, report: Report) -> None:
        self._running.discard(number)
        self._send((number, replace(report, detail={**report.detail, "machine": self._machine})))

    def _send(self, message: object) -> None:
        with self._sending, suppress(OSError):  # nobody is there to be told
            self._line.send(message)


def machine() -> dict[str, Any]:
    """What is told of the machine that ran a stage, in place of the one that started the run."""
    return {
        "host": socket.gethostname(),
        "cpu": cpu_model(),
        "cores": available_cores(),
        "platform": platform.platform(),
    }


def _look_around(order: Order, name: str) -> tuple[list[str], str]:
    complaints = differences(order.expected, facts(order.plugin_files)) if order.expected else []
    if order.meeting is None:
        return complaints, ""
    try:
        if (order.meeting / "token").read_text(encoding="utf-8") != order.secret:
            complaints.append(f"{order.meeting.parent.parent} is another store")
        mark = order.meeting / f"{name}-{os.getpid()}"
        mark.write_text(socket.gethostname(), encoding="utf-8")
    except OSError as error:
        complaints.append(f"it cannot use the store at {order.meeting.parent.parent}: {error.strerror or error}")
        return complaints, ""
    return complaints, mark.name
