"""Worker processes on this machine: a slot runs one stage at a time in a process of its own, the engine has several."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.engine.contract import Engine, Job, StageReport
from harness.engine.devices import CPU
from harness.engine.failures import failure_of
from harness.engine.process_state import available_cores
from harness.engine.supervisor import Child, prepare_fork_server
from harness.engine.worker import work
from harness.safe_io import size_text
from harness.store import Failure, Stage

if TYPE_CHECKING:
    from harness.engine.choice import EngineOptions


class Slot:
    """A worker process and the stage it runs.

    Attributes:
        name: for people.
        child: the process.
        device: what its stages train on, where it is not for the job's context to say. The process starts a GPU at the
            first of them: it must not be forked from one that has.
    """

    def __init__(
        self,
        name: str,
        job: Job,
        log: Path | None,
        *,
        device: str | None = None,
        environment: Mapping[str, str] | None = None,
        idle: float | None = None,
    ) -> None:
        """Start the process.

        Args:
            environment: variables of a fresh Python to start, in place of a fork from the fork server.
            idle: seconds without a stage after which the process leaves.
        """
        self.name, self.device = name, device
        if device is not None:
            job = replace(job, context=replace(job.context, device=device))
        self._lock = threading.Lock()
        self._spent = False
        self._verdict: Failure | None = None
        self._future: Future[StageReport] | None = None
        self._submitted = 0.0
        self._ready: float | None = None
        if environment is None:
            self.child = Child.fork(work, job, name, idle, log=log)
        else:
            self.child = Child.spawn(work, job, name, idle, log=log, environment=environment)
        self._listener = threading.Thread(target=self._listen, name=f"bench-{name.replace(' ', '-')}", daemon=True)
        self._listener.start()

    @property
    def busy(self) -> bool:
        """Return True while a stage is running."""
        return self._future is not None and not self._future.done()

    @property
    def usable(self) -> bool:
        """Return True where another stage can be given to it.

        The process lives, has a sound device, and has run no plugin that is not built in: what such a plugin changes in
        its process (torch's default type, an environment variable, a patched function) ends with the process.
        """
        return not (self.busy or self.condemned or self._spent) and self.child.alive and self._listener.is_alive()

    @property
    def condemned(self) -> bool:
        """Return True where the process was killed by us."""
        return self._verdict is not None

    def submit(self, stage: Stage) -> Future[StageReport]:
        """Run a stage; the future holds a report even when the process dies."""
        self._submitted = time.monotonic()
        self._spent = stage.foreign
        self._future = future = Future[StageReport]()
        try:
            self.child.line.send(stage)
        except OSError:
            self._listener.join()
            self._settle(self._lost())
        except Exception as error:  # what cannot be pickled
            self._settle(StageReport(failure_of(error), {}, self.name))
        else:
            if not self._listener.is_alive():  # the process ended just before
                self._settle(self._lost())
        return future

    def over_limit(self, timeout: float | None, memory: int | None) -> float | None:
        """Kill the process where its stage is over a limit; return the seconds that the stage has left, if limited."""
        if not self.busy or self.condemned:
            return None
        elapsed = 0.0 if self._ready is None else time.monotonic() - max(self._submitted, self._ready)
        left = None if timeout is None else timeout - elapsed
        if left is not None and left <= 0:
            reason = f"ran longer than {timeout:g} s"
            self._verdict = Failure("timeout", reason)  # before it is located, which may end the process
            place = self.child.place()
            self.condemn(Failure("timeout", f"{reason} (in {place})" if place else reason))
        elif memory is not None and (used := self.child.memory()) > memory:
            self.condemn(Failure("memory", f"used {size_text(used)} of memory, the limit is {size_text(memory)}"))
        return left

    def condemn(self, verdict: Failure) -> None:
        """Kill the process and everything it started; its stage gets this failure."""
        self._verdict = verdict
        self.child.kill()

    def retire(self) -> None:
        """Ask the process to leave if it is idle; does not wait."""
        if not self.busy:
            self._spent = True
            with suppress(OSError):
                self.child.line.send(None)

    def join(self, end: float) -> None:
        """Wait for the process to leave; kill it when it is there at ``end``, a moment of the monotonic clock."""
        if self.child.wait(max(0.0, end - time.monotonic())):
            self.condemn(Failure("killed", "the run ended"))
        self._listener.join(_PATIENCE)

    def _listen(self) -> None:
        """Take the process's messages until it ends."""
        while True:
            try:
                message = self.child.receive()
            except EOFError:
                break
            except Exception as error:  # a report that cannot be read here
                message = StageReport(failure_of(error), {}, self.name)
            if message is None:
                self._ready = time.monotonic()
            else:
                self._settle(message)
        self._settle(self._lost())

    def _lost(self) -> StageReport:
        ending = self.child.ending()
        return StageReport(self._verdict or Failure("killed", f"the worker process {ending}"), {}, self.name)

    def _settle(self, report: StageReport) -> None:
        with self._lock:
            if self._future is not None and not self._future.done():
                self._spent = self._spent or bool(report.detail.get("spent"))
                self._future.set_result(report)


JOBS_PER_DEVICE: Final = 2
_POLL: Final = 0.4  # seconds between two looks at the workers' memory
_PATIENCE: Final = 2.0  # seconds that idle workers get to leave at the end


class Processes(Engine):
    """Worker processes on this machine.

    They start one by one, when a stage is ready and no idle one is left, from a fork server that has torch loaded.
    A stage over its limits costs its worker; the next stage gets a fresh one.

    Args:
        options: slots, devices and limits. The start of a process is no part of a stage's time; memory-mapped files and
            what a worker starts are part of its memory.
        log: file to which workers append what is printed in them.
    """

    def __init__(self, options: EngineOptions, log: Path | None = None) -> None:
        self._devices, self._timeout, self._memory = options.devices, options.timeout, options.memory
        self._log = log
        self.slots = options.jobs or available_cores()
        self.device_slots = len(self._devices) * (options.jobs_per_device or JOBS_PER_DEVICE)
        self._slots: list[Slot] = []
        self._started = 0

    def start(self, job: Job) -> None:
        """Take the job; no process starts yet."""
        self._job = job
        prepare_fork_server(job.preload)

    def submit(self, stage: Stage) -> Future[StageReport]:
        """Run a stage on an idle worker, or on a new one."""
        self._retire_unfit()
        device = self._place(stage)
        slot = next((slot for slot in self._slots if slot.usable and device in (None, slot.device)), None)
        if slot is None:
            self._started += 1
            slot = Slot(f"worker {self._started}", self._job, self._log, device=device)
            self._slots.append(slot)
        return slot.submit(stage)

    def _place(self, stage: Stage) -> str | None:
        """Return the device of the slot that a stage gets: for networks the one with the fewest stages at work."""
        if not self._devices:
            return None
        if not stage.trains:
            return CPU
        busy = [slot.device for slot in self._slots if slot.busy]
        return min(self._devices, key=busy.count)

    def tick(self) -> float | None:
        """End the stages that are over a limit."""
        pauses = [_POLL] if self._memory is not None else []
        for slot in self._slots:
            if (left := slot.over_limit(self._timeout, self._memory)) is not None:
                pauses.append(max(left, 0.0))
        return min(pauses, default=None)

    def kill(self) -> None:
        """Kill every worker."""
        for slot in self._slots:
            slot.condemn(Failure("killed", "the run was interrupted"))

    def close(self) -> None:
        """Let idle workers leave by themselves (a tracker may flush); kill those that do not."""
        for slot in self._slots:
            slot.retire()
        end = time.monotonic() + _PATIENCE
        for slot in self._slots:
            slot.join(end)
        self._slots.clear()

    def _retire_unfit(self) -> None:
        """Let go of workers that run nothing more, and of idle ones so large that the next stage would pay for it."""
        for slot in self._slots:
            bloated = not slot.busy and self._memory is not None and slot.child.memory() > self._memory / 2
            if bloated or not slot.usable:
                slot.retire()
        self._slots = [slot for slot in self._slots if slot.busy or slot.child.alive]
