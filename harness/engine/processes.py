"""The process engine: one single-worker process per slot, so that a dead worker loses one stage and is known."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from harness.engine.contract import Engine, Job, StageReport
from harness.engine.devices import CPU
from harness.engine.process_state import available_cores
from harness.engine.slot import Slot
from harness.engine.supervisor import prepare_fork_server
from harness.store import Failure, Stage

PRELOAD: Final = ("harness.engine.preload",)
JOBS_PER_DEVICE: Final = 2
_POLL: Final = 0.4  # seconds between two looks at the workers' memory
_PATIENCE: Final = 2.0  # seconds that idle workers get to leave at the end


class Processes(Engine):
    """Worker processes on this machine.

    They start one by one, when a stage is ready and no idle one is left, from a fork server that has torch loaded.
    A stage over its limits costs its worker; the next stage gets a fresh one.

    Args:
        jobs: number of slots; one per core that this process may use when absent.
        timeout: seconds per stage, the start of the process not counted.
        memory: bytes of resident memory per worker and what it starts, memory-mapped files included.
        log: file to which workers append what is printed in them.
        devices: where stages that train networks run, in slots beside ``jobs``, e.g. ``("cuda:0",)``; none for the CPU.
        jobs_per_device: slots of each device.
        preload: modules that the fork server loads once for all workers; the first engine of a process decides.
    """

    def __init__(
        self,
        jobs: int | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        log: Path | None = None,
        devices: Sequence[str] = (),
        jobs_per_device: int = JOBS_PER_DEVICE,
        preload: Sequence[str] = PRELOAD,
    ) -> None:
        self._jobs = jobs or available_cores()
        self._timeout = timeout
        self._memory = memory
        self._log = log
        self._devices, self._jobs_per_device = tuple(devices), jobs_per_device
        self._preload = preload
        self._slots: list[Slot] = []
        self._retired: list[Slot] = []
        self._started = 0

    @property
    def slots(self) -> int:
        """Number of stages that may run at a time."""
        return self._jobs

    @property
    def device_slots(self) -> int:
        """Number of stages that train networks beside them, on devices."""
        return len(self._devices) * self._jobs_per_device

    def start(self, job: Job) -> None:
        """Take the job; no process starts yet."""
        self._job = job
        prepare_fork_server(self._preload)

    def submit(self, stage: Stage) -> Future[StageReport]:
        """Run a stage on an idle worker, or on a new one."""
        self._drop_lost()
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
        for slot in [*self._slots, *self._retired]:
            slot.join(_PATIENCE)
        self._slots.clear()
        self._retired.clear()

    def _drop_lost(self) -> None:
        """Forget dead workers, and idle ones that a stage left so large that the next would pay for it."""
        for slot in [slot for slot in self._slots if not slot.busy]:
            bloated = self._memory is not None and slot.memory() > self._memory / 2
            if bloated or not slot.usable:
                slot.retire()
                self._slots.remove(slot)
                self._retired.append(slot)
