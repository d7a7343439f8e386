"""The profile of a cluster: a suite's ``cluster`` or a profile file, checked. No Dask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

QUEUES: Final = ("slurm", "pbs", "lsf")
KINDS: Final = ("local", "address", *QUEUES)


@dataclass(frozen=True)
class Profile:
    """A cluster.

    Attributes:
        kind: ``address`` (a scheduler that runs already), ``local`` (worker processes on this machine), or a batch
            system through dask-jobqueue: ``slurm``, ``pbs``, ``lsf``.
        address: of the scheduler, for ``address``.
        workers: number of Dask workers to start; one per core for ``local`` where absent.
        adapt: fewest and most workers, as the work demands.
        store: the store's folder as workers see it, where it differs.
        data: the data folder as workers see it, where it differs.
        resources: stage kind -> name -> amount that a stage takes of its worker's (Dask's abstract resources).
        offers: name -> amount that each started worker has.
        retries: how often a stage runs again because its worker (a machine, a batch job) was lost.
        wait: seconds to wait for the first worker, and for a lost scheduler or the last worker to come back.
        environment: variables of the processes that run stages.
        options: passed to Dask's class for this kind, such as ``SLURMCluster``.
    """

    kind: str = "local"
    address: str | None = None
    workers: int | None = None
    adapt: tuple[int, int] | None = None
    store: str | None = None
    data: str | None = None
    resources: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    offers: Mapping[str, float] = field(default_factory=dict)
    retries: int = 3
    wait: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def patience(self) -> float:
        """``wait``, or a minute; an hour for batch systems, where jobs stand in a queue."""
        if self.wait is not None:
            return self.wait
        return 3600.0 if self.kind in QUEUES else 60.0

    @property
    def title(self) -> str:
        """Name of the cluster, for messages."""
        if self.kind == "address":
            return f"the cluster at {self.address}"
        return "the local cluster" if self.kind == "local" else f"the {self.kind.upper()} cluster"
