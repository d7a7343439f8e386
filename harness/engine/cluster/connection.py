"""A cluster for the length of a run: found or started once, checked, and left or closed at the end."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from harness.engine.cluster.facts import Order, facts
from harness.engine.cluster.profile import QUEUES, Profile, connect, start_cluster
from harness.engine.process_state import interrupts_held_back
from harness.errors import UserError
from harness.safe_io import writing
from harness.store import Lease, Store, begin_draft

_log = logging.getLogger(__name__)
_RUSH: Final = 10.0  # seconds for a call that must not hold up the end of a run
_FIRST_WORD: Final = 30.0  # seconds without a worker until the user is told
_Answer = TypeVar("_Answer")


class Cluster:
    """A Dask cluster that runs stages.

    Nothing happens before :meth:`open`. Several engines may use it one after the other.

    Args:
        profile: which cluster.
        jobs: most stages at a time; for ``local`` also the number of workers where the profile gives none.
        plugin_files: single-file plugins that stages may use.
    """

    def __init__(self, profile: Profile, jobs: int | None = None, plugin_files: Iterable[Path] = ()) -> None:
        self.profile = profile
        self.name = f"bench-{uuid.uuid4().hex[:12]}"
        self.store: Store | None = None
        self.client: Any = None
        self._jobs = jobs
        self._plugin_files = tuple(plugin_files)
        self._own: Any = None
        self._order: Order | None = None
        self._meeting: Path | None = None
        self._lock: Lease | None = None
        self._threads = 0

    @property
    def slots(self) -> int:
        """Stages to keep submitted: the workers' threads, or as many as the largest cluster may have."""
        threads = self._threads
        if self.profile.adapt is not None:
            per_worker = max(1, self._per_worker())
            threads = max(threads, self.profile.adapt[1] * per_worker)
        elif self.profile.kind in QUEUES and self.profile.workers:
            threads = max(threads, self.profile.workers * self._per_worker())
        return max(1, threads if self._jobs is None else min(threads, self._jobs))

    def open(self, order: Order) -> None:
        """Find or start the cluster, and make sure that its workers can do this run's work.

        Raises:
            UserError: there is no such cluster, no worker comes, or a worker has other code or another store.
        """
        if self._order is not None:
            return
        try:
            with interrupts_held_back():
                self._own = start_cluster(self.profile, self._jobs)
            self.client = connect(self._own or self.profile.address, self.profile)
            self._order = self._settled(order)
            self._register()
            self._await_workers()
            self._check_workers()
        except OSError as error:  # those of Dask's connections
            self.close()
            raise UserError(f"{self.profile.title} was lost when the run started: {error}") from None
        except BaseException:
            self.close()
            raise

    def _register(self) -> None:
        """Tell the scheduler of this run.

        Raises:
            UserError: the workers cannot load bench.
        """
        from harness.engine.cluster.plugin import StagePlugin

        assert self._order is not None
        try:
            self.client.register_plugin(StagePlugin(self._order), name=self.name)
        except (ImportError, AttributeError) as error:
            raise UserError(
                f"the workers of {self.profile.title} cannot load bench ({error}); install the same version of "
                "equad-bench[cluster] there"
            ) from None

    def count(self) -> int:
        """Ask how many threads the workers have now; the last known number where the scheduler does not answer."""
        found = self._within(_RUSH, lambda: sum(self.client.nthreads().values()))
        if found is not None:
            self._threads = found
        return self._threads

    def end_stages(self) -> None:
        """End what this run has running on the workers, and let them forget the run."""
        if self.client is not None and self._order is not None and self.client.status == "running":
            self._within(_RUSH, lambda: self.client.unregister_worker_plugin(self.name))

    def close(self) -> None:
        """Let go of the cluster; one that was started here ends. Safe to call twice."""
        self.end_stages()
        self._order = None
        for part in (self.client, self._own):
            if part is not None:
                self._within(_RUSH, lambda part=part: part.close(timeout=_RUSH / 2))  # type: ignore[misc]
        self.client = self._own = None
        if self._meeting is not None:
            for path in (*self._meeting.glob("*"), self._meeting):
                with suppress(OSError):
                    path.rmdir() if path.is_dir() else path.unlink()
        if self._lock is not None:
            self._lock.release()
        self._meeting = self._lock = None

    def _within(self, seconds: float, call: Callable[[], _Answer]) -> _Answer | None:
        """Return the answer of a call over the network, or None where there is none in time."""
        answers: list[_Answer] = []

        def ask() -> None:
            with suppress(Exception):
                answers.append(call())

        thread = threading.Thread(target=ask, name="bench-cluster", daemon=True)
        thread.start()
        thread.join(seconds)
        return answers[0] if answers else None

    def _per_worker(self) -> int:
        options = self.profile.options
        if self.profile.kind in QUEUES:
            return max(1, int(options.get("cores", 1)) // int(options.get("processes", 1)))
        return int(options.get("threads_per_worker", 1))

    def _settled(self, order: Order) -> Order:
        """Return the order with paths as the workers see them, and with the facts to compare."""
        context = dict(order.job.context)
        logs = order.logs
        if "store" in context:
            self.store = Store(Path(context["store"]))
            secret = self._meet(self.store)
            there = Path(self.profile.store or self.store.root)
            logs = _moved(logs, self.store.root, there)
            context["store"] = str(there)
            assert self._meeting is not None
            order = replace(order, meeting=there / "tmp" / self._meeting.name, secret=secret)
        if self.profile.data is not None and "data_dir" in context:
            context["data_dir"] = self.profile.data
        return replace(
            order,
            job=replace(order.job, context=context),
            logs=logs,
            expected=facts(self._plugin_files),
            plugin_files=self._plugin_files,
            environment=self.profile.environment,
        )

    def _meet(self, store: Store) -> str:
        """Leave a file in the store for the workers to find; the lock keeps other runs from sweeping it away."""
        secret = uuid.uuid4().hex
        folder = store.root / "tmp"
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._meeting, self._lock = begin_draft(folder, self.name)
        with writing(self._meeting):
            self._meeting.mkdir()
            (self._meeting / "token").write_text(secret, encoding="utf-8")
        return secret

    def _await_workers(self) -> None:
        """Wait for the first worker. A task that waits makes an adaptive cluster of others start one."""
        began = time.monotonic()
        bait = None
        told = False
        while not self.count():
            waited = time.monotonic() - began
            if waited > self.profile.patience:
                raise UserError(
                    f"{self.profile.title} has had no worker for {waited:.0f} s; {_how_to_start(self.profile)} "
                    "('wait' in the profile changes how long)"
                )
            if bait is None:
                bait = self.client.submit(int, pure=False, key=f"{self.name}-wake")
            if not told and waited > _FIRST_WORD:
                told = True
                _log.warning("waiting for a worker of %s", self.profile.title)
            time.sleep(0.2)

    def _check_workers(self) -> None:
        from harness.engine.cluster.plugin import complaints_of

        complaints = self.client.run(complaints_of, self.name)
        problems = [f"{worker}: {text}" for worker, texts in sorted(complaints.items()) for text in texts]
        problems = problems or self._lacking()
        if problems:
            head = f"workers of {self.profile.title} cannot do this run's work:"
            more = [f"and {len(problems) - 10} more"] if len(problems) > 10 else []
            raise UserError("\n  ".join([head, *problems[:10], *more]))

    def _lacking(self) -> list[str]:
        """Resources that stages take and no worker has: such stages would wait for ever."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        problems = []
        for kind, needs in self.profile.resources.items():
            for name, amount in needs.items():
                most = max((worker["resources"].get(name, 0) for worker in workers), default=0)
                if most < amount:
                    problems.append(
                        f"a stage of kind '{kind}' takes {name}={amount:g}; a worker offers at most {most:g}"
                    )
        return problems


def _moved(path: Path | None, here: Path, there: Path) -> Path | None:
    """Return a path below one folder as the same below another; None where it is not below."""
    if path is None or not path.is_relative_to(here):
        return None
    return there / path.relative_to(here)


def _how_to_start(profile: Profile) -> str:
    if profile.kind == "address":
        return f"start some with `dask worker {profile.address}`"
    if profile.kind in QUEUES:
        return "look at the queue and at the jobs' output"
    return "look at what the workers print"
