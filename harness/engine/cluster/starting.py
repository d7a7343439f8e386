"""Start or find a Dask cluster by its profile."""

from __future__ import annotations

import logging
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from typing import Any, Final
from urllib.parse import urlsplit

from harness.engine.cluster.profile import QUEUES, Profile
from harness.engine.threads import available_cores
from harness.errors import UserError

_BATCH: Final = {"slurm": ("SLURMCluster", "sbatch"), "pbs": ("PBSCluster", "qsub"), "lsf": ("LSFCluster", "bsub")}
"""Class of dask-jobqueue and command that submits a job."""
_SILENT: Final = "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED"


def need(module: str) -> Any:
    """Import a module of the extra ``cluster``.

    ``dask_jobqueue`` takes Ctrl-C and SIGTERM for itself when it is imported; they are taken back here.

    Raises:
        UserError: it is not installed.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] in ("dask", "distributed", "dask_jobqueue"):
            raise UserError(
                f"--engine dask needs the package {error.name.partition('.')[0].replace('_', '-')}: "
                "pip install equad-bench[cluster]"
            ) from None
        raise
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def start_cluster(profile: Profile, jobs: int | None) -> Any:
    """Start a cluster; None for one that runs already.

    Raises:
        UserError: a package is missing, Dask refuses the profile's options, or nothing has the address's host name.
    """
    distributed, dask = need("distributed"), need("dask")
    quiet()
    if profile.kind == "address":
        _check_host(profile)
        return None
    options = cluster_options(profile, jobs)
    with dask.config.set({"distributed.scheduler.allowed-failures": profile.retries, _SILENT: "critical"}):
        try:
            if profile.kind == "local":
                cluster = distributed.LocalCluster(**options)
            else:
                cluster = batch_class(profile)(**options)
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            raise UserError(f"{profile.title} cannot be started with these options: {_first_line(error)}") from None
    if profile.adapt is not None:
        cluster.adapt(minimum=profile.adapt[0], maximum=profile.adapt[1])
    elif profile.kind in QUEUES:
        cluster.scale(profile.workers)
    return cluster


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """For starting a cluster: Dask's thread for it inherits the mask, as does all that this thread will start.

    So Ctrl-C, which reaches the whole terminal group, stays the main thread's business.
    """
    resource_tracker.ensure_running()  # first, because starting it lifts the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def batch_class(profile: Profile) -> Any:
    """Return the class of dask-jobqueue for a batch system.

    Raises:
        UserError: this machine cannot submit jobs, or the package is missing.
    """
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


def connect(cluster: Any, profile: Profile) -> Any:
    """Return a client of a cluster or of an address.

    Raises:
        UserError: nobody answers, or not a Dask scheduler.
    """
    distributed = need("distributed")
    try:
        return _client_class(distributed)(cluster, timeout=min(profile.patience, 60.0), set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{profile.title} does not answer: {_first_line(error)}") from None


def _client_class(distributed: Any) -> Any:
    class Client(distributed.Client):  # type: ignore[misc]
        """One that holds up nothing where it could not start."""

        def start(self, **options: Any) -> None:
            try:
                super().start(**options)
            except BaseException:
                self.status = "closed"  # else its ``__del__`` waits minutes for the connection that there is not
                raise

    return Client


def _check_host(profile: Profile) -> None:
    """Look the scheduler's host name up: Dask asks again and again for a minute where there is none.

    Raises:
        UserError: nothing has this name.
    """
    host = urlsplit(profile.address or "").hostname
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a host name"
        raise UserError(f"{profile.title} is not to be found: '{host}' has no address ({reason})") from None


def quiet() -> None:
    """Silence Dask's log in this process: what matters of it is told in our words."""
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _first_line(error: BaseException) -> str:
    """Of the error that the others came from."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
