"""Real Dask schedulers and workers, as processes of their own on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from toy import ToyStore, wait_until

from harness.engine import EngineOptions, StageOutcomes, run
from harness.engine.cluster import Profile
from harness.engine.dask import Dask
from harness.store import Stage, Store

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Processes:
    """A scheduler and its workers.

    ``folder`` is for their output and scratch files.
    """

    folder: Path
    port: int = field(default_factory=free_port)
    host: str = "127.0.0.1"
    scheduler: subprocess.Popen[bytes] | None = None
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"tcp://{self.host}:{self.port}"

    def start_scheduler(self) -> None:
        place = ("--host", self.host, "--port", str(self.port))
        self.scheduler = self.launch("scheduler", *place, "--no-dashboard", "--no-show")
        wait_until(self.answers)

    def answers(self) -> bool:
        """Whether the scheduler takes connections."""
        with suppress(OSError), socket.create_connection((self.host, self.port), timeout=1):
            return True
        return False

    def wait_for_workers(self) -> None:
        """Until all that were started are there."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(len(self.workers), timeout=60)

    def start_worker(self, name: str, *options: str, prefix: Sequence[str] = (), **settings: str) -> None:
        scratch = ("--local-directory", str(self.folder / name), "--name", name)
        usual = ("--nworkers", "1", "--nthreads", "1", "--no-dashboard", "--death-timeout", "60")
        self.workers[name] = self.launch(
            "worker", self.address, *usual, *scratch, *options, prefix=prefix, name=name, **settings
        )

    def launch(
        self, what: str, *options: str, prefix: Sequence[str] = (), name: str = "scheduler", **settings: str
    ) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(HERE), str(ROOT)])
        quiet = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "20s", "DASK_LOGGING__DISTRIBUTED": "error"}
        environment = {**os.environ, "PYTHONPATH": path, **quiet, **settings}
        with (self.folder / f"{name}.out").open("ab") as output:
            return subprocess.Popen(
                [*prefix, sys.executable, "-m", f"distributed.cli.dask_{what}", *options],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def stop(self) -> None:
        for process in [*self.workers.values(), *([self.scheduler] if self.scheduler else [])]:
            kill_tree(process.pid)
            process.wait()


def kill_tree(pid: int) -> None:
    """SIGKILL for a process and all that it has started, agents' own sessions included."""
    with suppress(psutil.Error):
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        for process in family:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)


def go(
    stages: list[Stage],
    store: ToyStore,
    cluster: Profile,
    *,
    run_log: Path | None = None,
    limits: dict[str, Any] | None = None,
    **options: Any,
) -> StageOutcomes:
    """Run stages on a cluster; toy stages need no torch."""
    with Dask(EngineOptions("dask", cluster=cluster, **(limits or {})), run_log) as engine:
        return run(stages, store=store, job=store.job, engine=engine, **options)


def inline(stages: Sequence[Stage], folder: Path) -> Store:
    """The same stages run in this process."""
    store = ToyStore(folder / "store")
    run(stages, store=store, job=store.job, engine=EngineOptions("inline").make())
    return store


def profile(processes: Processes, **more: Any) -> Profile:
    """The profile of a scheduler that runs."""
    return Profile("address", address=processes.address, **more)


def contents(store: Store) -> dict[str, bytes]:
    """Every file of every artifact but the description, which holds the time."""
    artifacts = store.root / "artifacts"
    files = [path for path in artifacts.rglob("*") if path.is_file() and path.name != "meta.json"]
    return {str(path.relative_to(artifacts)): path.read_bytes() for path in sorted(files)}
