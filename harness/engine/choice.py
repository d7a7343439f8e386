"""The engines by name, and the options that choose and limit one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.engine.contract import Engine
from harness.engine.devices import CPU, CUDA, choose_devices
from harness.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from harness.engine.cluster import Profile

ENGINES: Final = ("processes", "inline", "dask")


class Inline(Engine):
    """The engine for debugging: the scheduler runs each stage itself, so that a breakpoint works. It has no limits."""

    in_process = True


@dataclass(frozen=True)
class EngineOptions:
    """The settings of a run's engine.

    Attributes:
        engine: ``processes`` (one process per slot, one thread each), ``inline`` (this process, for debugging) or
            ``dask`` (the workers of a Dask cluster).
        jobs: number of slots; one per core that this process may use when absent, or one per thread of the cluster.
        timeout: seconds that one stage may run.
        memory: bytes of resident memory that the worker of one stage may use.
        retry_failed: run stages again whose failure an earlier run kept.
        cluster: for ``dask``: which cluster; on this machine when absent.
        device: text as for ``--device``: where stages that train networks run.
        jobs_per_device: for ``processes``: stages at a time on each device.
    """

    engine: str = "processes"
    jobs: int | None = None
    timeout: float | None = None
    memory: int | None = None
    retry_failed: bool = False
    cluster: Profile | None = None
    device: str = CPU
    jobs_per_device: int | None = None

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """The devices that ``device`` names; those of a cluster are its workers', of which this machine cannot know.

        Raises:
            UserError: no such device.
        """
        if self.engine != "dask":
            return choose_devices(self.device)
        if self.device not in (CPU, CUDA):
            raise UserError(f"--device {self.device}: with --engine dask write cuda; each worker takes the GPU it sees")
        return () if self.device == CPU else (CUDA,)

    def make(self, log: Path | None = None) -> Engine:
        """Return the engine, not yet started.

        Args:
            log: file to which workers append what is printed in them; their own output streams when absent.

        Raises:
            UserError: an unknown name, a missing package, a limit that is not positive or that the engine cannot
                enforce, or no such device.
        """
        self._check()
        if self.engine == "inline":
            return Inline()
        if self.engine == "dask":
            from harness.engine.dask import Dask

            return Dask(self, log)
        from harness.engine.processes import Processes

        return Processes(self, log)

    def _check(self) -> None:
        name, jobs = self.engine, self.jobs
        if name not in ENGINES:
            raise UserError(f"unknown engine '{name}'{did_you_mean(name, ENGINES)}; there are: {', '.join(ENGINES)}")
        limits = {"jobs": jobs, "timeout": self.timeout, "memory": self.memory, "jobs-per-device": self.jobs_per_device}
        for option, value in limits.items():
            if value is not None and value <= 0:
                raise UserError(f"--{option} must be positive, not {value}")
        if self.jobs_per_device is not None and (name != "processes" or not self.devices):
            raise UserError("--jobs-per-device goes with --engine processes and a --device other than the CPU")
        if self.cluster is not None and name != "dask":
            raise UserError(f"--cluster is for --engine dask, not for --engine {name}")
        limited = self.timeout is not None or self.memory is not None
        if name == "inline" and (limited or len(self.devices) > 1 or (jobs or 1) > 1):
            raise UserError(
                "--timeout, --memory, several jobs and several devices need worker processes: use --engine processes"
            )
