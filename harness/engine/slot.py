"""One slot of an engine: a worker process and the stage that it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness.engine.contract import Job, StageReport
from harness.engine.failures import failure_of
from harness.engine.supervisor import Child
from harness.engine.worker import work
from harness.safe_io import size_text
from harness.store import Failure, Stage


class Slot:
    """A worker process and the stage it runs.

    Attributes:
        name: for people.
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
        preload: Sequence[str] = (),
        idle: float | None = None,
    ) -> None:
        """Start the process.

        Args:
            environment: variables of a fresh Python to start, in place of a fork from the fork server.
            preload: modules that the process loads first.
            idle: seconds without a stage after which the process leaves.
        """
        self.name, self.device = name, device
        if device is not None:
            job = replace(job, context={**job.context, "device": device})
        self._lock = threading.Lock()
        self._spent = False
        self._verdict: Failure | None = None
        self._future: Future[StageReport] | None = None
        self._submitted = 0.0
        self._ready: float | None = None
        if environment is None:
            self._child = Child.fork(work, job, name, tuple(preload), idle, log=log)
        else:
            self._child = Child.spawn(work, job, name, tuple(preload), idle, log=log, environment=environment)
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
        return not (self.busy or self.condemned or self._spent) and self._child.alive and self._listener.is_alive()

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
            self._child.line.send(stage)
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
            self.condemn(Failure("timeout", f"ran longer than {timeout:g} s"), locate=True)
        elif memory is not None and (used := self.memory()) > memory:
            self.condemn(Failure("memory", f"used {size_text(used)} of memory, the limit is {size_text(memory)}"))
        return left

    def memory(self) -> int:
        """Return the bytes of resident memory of the process and of those it started."""
        return self._child.memory()

    def condemn(self, verdict: Failure, *, locate: bool = False) -> None:
        """Kill the process and everything it started; its stage gets this failure.

        Args:
            locate: add the line of a plugin where it is, if it tells.
        """
        self._verdict = verdict  # before it is located, which may end the process
        if locate and (place := self._child.place()):
            self._verdict = replace(verdict, reason=f"{verdict.reason} (in {place})")
        self._child.kill()

    def retire(self) -> None:
        """Ask the idle process to leave; does not wait."""
        if not self.busy and self._child.alive:
            with suppress(OSError):
                self._child.line.send(None)

    def join(self, seconds: float) -> None:
        """Wait for the process to leave; kill it when it takes longer."""
        if self._child.wait(seconds):
            self.condemn(Failure("killed", "the run ended"))
        self._listener.join(seconds)

    def _listen(self) -> None:
        """Take the process's messages until it ends."""
        while True:
            try:
                message = self._child.receive()
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
        ending = self._child.ending()
        return StageReport(self._verdict or Failure("killed", f"the worker process {ending}"), {}, self.name)

    def _settle(self, report: StageReport) -> None:
        with self._lock:
            if self._future is not None and not self._future.done():
                self._spent = self._spent or bool(report.detail.get("spent"))
                self._future.set_result(report)
