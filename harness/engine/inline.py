"""The inline engine: every stage in this process, one after the other. For debugging: a breakpoint works."""

from __future__ import annotations

from concurrent.futures import Future

from harness.engine.contract import Job, Report
from harness.engine.worker import execute
from harness.store.stage import Stage


class Inline:
    """One slot, this process. It cannot end a stage, so it has no limits."""

    slots = 1
    device_slots = 0

    def start(self, job: Job) -> None:
        """Take the job."""
        self._job = job

    def submit(self, stage: Stage) -> Future[Report]:
        """Run the stage and return when it ended."""
        future: Future[Report] = Future()
        future.set_result(execute(self._job, stage, "inline"))
        return future

    def tick(self) -> None:
        """Nothing to enforce."""

    def kill(self) -> None:
        """Nothing runs when this is called."""

    def close(self) -> None:
        """Nothing to free."""
