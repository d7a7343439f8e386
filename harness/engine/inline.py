"""The inline engine: every stage in this process, one after the other. For debugging: a breakpoint works."""

from __future__ import annotations

from concurrent.futures import Future

from harness.engine.contract import Job, Report
from harness.store import Stage


class Inline:
    """No slot: the scheduler runs each stage itself. It cannot end a stage, so there are no limits."""

    in_process = True
    slots = 0
    device_slots = 0

    def start(self, job: Job) -> None:
        """Start nothing."""

    def submit(self, stage: Stage) -> Future[Report]:
        """Refuse a stage: there is no slot."""
        raise NotImplementedError(stage.title)

    def tick(self) -> None:
        """Nothing to enforce."""

    def kill(self) -> None:
        """Nothing runs when this is called."""

    def close(self) -> None:
        """Nothing to free."""
