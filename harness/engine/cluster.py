"""The profile of a cluster, and the Dask cluster that it describes. Dask is an extra, imported when it is used."""

from __future__ import annotations

import logging
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from harness.engine.process_state import available_cores
from harness.errors import UserError

QUEUES: Final = ("slurm", "pbs", "lsf")
KINDS: Final = ("local", "address", *QUEUES)
_BATCH: Final = {"slurm": ("SLURMCluster", "sbatch"), "pbs": ("PBSCluster", "qsub"), "lsf": ("LSFCluster", "bsub")}
"""Class of dask-jobqueue and command that submits a job."""
_SILENT: Final = "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED"


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
        wait: seconds to wait for the first worker, and for one to come back after the last was lost.
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

    @property
    def most_threads(self) -> int:
        """The threads of all the workers that may be started; 0 where the profile does not say."""
        workers = self.adapt[1] if self.adapt is not None else self.workers or 0
        counts = {name: value for name, value in self.options.items() if isinstance(value, int) and value > 0}
        if self.kind in QUEUES:
            return workers * max(1, counts.get("cores", 1) // counts.get("processes", 1))
        return workers * counts.get("threads_per_worker", 1)


def need(module: str) -> Any:
    """Import a module of the extra ``cluster``.

    ``dask_jobqueue`` takes Ctrl-C and SIGTERM for itself when it is imported; they are taken back here.

    Raises:
        UserError: it is not installed.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0].replace("_", "-")
        raise UserError(f"--engine dask needs the package {package}: pip install equad-bench[cluster]") from None
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def start_cluster(profile: Profile, jobs: int | None) -> Any:
    """Start a cluster; None for one that runs already. Dask's log is silenced: what matters is told in our words.

    Raises:
        UserError: a package is missing, or Dask refuses the profile's options.
    """
    need("distributed")  # whose defaults would be lost with what is set below, if they came later
    dask = need("dask")
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if profile.kind == "address":
        return None
    with dask.config.set({"distributed.scheduler.allowed-failures": profile.retries, _SILENT: "critical"}):
        try:
            cluster = cluster_class(profile)(**cluster_options(profile, jobs))
        except (TypeError, ValueError, ArithmeticError, OSError, RuntimeError) as error:
            raise UserError(f"{profile.title} cannot be started with these options: {first_line(error)}") from None
    if profile.adapt is not None:
        cluster.adapt(minimum=profile.adapt[0], maximum=profile.adapt[1])
    elif profile.kind in QUEUES:
        cluster.scale(profile.workers)
    return cluster


def cluster_class(profile: Profile) -> Any:
    """Return Dask's class for a cluster that is to be started.

    Raises:
        UserError: this machine cannot submit jobs, or the package is missing.
    """
    if profile.kind == "local":
        return need("distributed").LocalCluster
    name, command = _BATCH[profile.kind]
    if shutil.which(command) is None:
        raise UserError(f"there is no command '{command}' here: run this on a machine that may submit jobs")
    return getattr(need("dask_jobqueue"), name)


def cluster_options(profile: Profile, jobs: int | None = None) -> dict[str, Any]:
    """Return the arguments of the class for this kind of cluster."""
    options = dict(profile.options)
    if profile.kind == "local":
        workers = 0 if profile.adapt is not None else profile.workers or jobs or available_cores()
        ours = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": None}
        ours["silence_logs"] = logging.CRITICAL  # workers take their level from this rather than from _SILENT
        return {**ours, **options, **({"resources": dict(profile.offers)} if profile.offers else {})}
    options["scheduler_options"] = {"dashboard_address": ":0", **options.get("scheduler_options", {})}
    if profile.offers:
        offered = ",".join(f"{name}={amount:g}" for name, amount in profile.offers.items())
        options["worker_extra_args"] = [*options.get("worker_extra_args", ()), "--resources", offered]
    return options


def first_line(error: BaseException) -> str:
    """Return the first line of the error that the others came from."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
