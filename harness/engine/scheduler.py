"""The scheduler: runs stages in the order of their inputs, and skips those whose input failed."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from harness.engine.contract import Engine, Event, Job, Observer, StageOutcomes, StageReport
from harness.engine.graph import Heap, Ready, StageGraph
from harness.engine.process_state import one_thread, switches_kept, terminable
from harness.engine.worker import Attempt
from harness.errors import DataError
from harness.store import Failure, Stage

if TYPE_CHECKING:
    from harness.store import Lease, Store

_ATTEMPTS: Final = 2
_NEXT_LOOK: Final = 0.5  # seconds until another look at a stage that another process runs
_LATE: Final = 30.0  # seconds that a network file system may take to show what another machine has written


def run(
    stages: Iterable[Stage],
    *,
    store: Store,
    job: Job,
    engine: Engine,
    reserve: Iterable[Stage] = (),
    observer: Observer | None = None,
    cost: Callable[[Stage], float] = lambda _: 1.0,
    retry_failed: bool = False,
    outcome: StageOutcomes | None = None,
) -> StageOutcomes:
    """Run every stage that has no artifact yet, inputs first, the longest chain of work first.

    Datasets are prepared before anything else runs, so that faults of the data are reported early. A stage that fails
    takes only those with it that read its artifacts. Several processes may run the same stages on
    one store at the same time: they share the work. A stage that fails because an input was lost meanwhile (found
    damaged when read, say) runs once more, after the stage that makes the input.

    Args:
        stages: what the artifacts of the run need, in any order; equal priorities keep it.
        store: where artifacts, leases and kept failures are.
        job: what runs a stage.
        engine: where stages run, from :meth:`EngineOptions.make`; whoever made it closes it.
        reserve: stages that run only if an artifact of theirs that is needed has been lost.
        observer: called with every :class:`Event`, from the calling thread.
        cost: expected seconds of a stage, for the order.
        retry_failed: run stages again whose failure an earlier run kept.
        outcome: the result of earlier calls, to which this one's is added as it goes.

    Raises:
        DataError: a dataset cannot be built from its files; the text holds the message of each such dataset. Nothing
            but datasets has been run.
        KeyboardInterrupt: Ctrl-C. No worker is left, every finished stage is in the store.
        Terminated: SIGTERM and the like, likewise.
    """
    began, wanted = time.monotonic(), list(stages)
    outcome = outcome or StageOutcomes()
    scheduler = _Scheduler(StageGraph([*wanted, *reserve]), store, engine, observer, retry_failed, outcome)
    scheduler.settle_known(wanted)
    if scheduler.unsettled:
        with scheduler.at_work(job, cost):
            while scheduler.unsettled:
                scheduler.hand_out()
                if (stage := scheduler.next_here()) is not None:
                    with scheduler.in_this_process(stage) as attempt:
                        attempt.facts = job.body(stage, job.context) or {}
                scheduler.collect()
    outcome.seconds += time.monotonic() - began
    return outcome


@dataclass
class _Running:
    """A stage in an engine."""

    stage: Stage
    tries: int
    began: float = field(default_factory=time.monotonic)


class _Scheduler:
    """The state of one run. A stage is unsettled until it has an artifact or a failure."""

    def __init__(
        self,
        graph: StageGraph,
        store: Store,
        engine: Engine,
        observer: Observer | None,
        retry: bool,
        outcome: StageOutcomes,
    ) -> None:
        self._graph, self._store, self._engine = graph, store, engine
        self._observer, self._retry, self._outcome = observer, retry, outcome
        self.unsettled: set[str] = set()
        self._missing: dict[str, int] = {}
        self._rank: dict[str, tuple[float, int]] = {}
        self._ready = Ready(engine)
        self._held: set[str] = set()  # in a heap, running, or put aside: not to be queued again
        self._running: dict[Future[StageReport], _Running] = {}
        self._elsewhere: dict[str, float] = {}  # run by another process; when to look again
        self._waiting: set[str] = set()
        self._revived: dict[str, float] = {}
        self._healed: set[str] = set()
        self._unprepared: set[str] = set()  # datasets: all else is held back until they are settled
        self._faults: list[str] = []
        self._leases: dict[str, Lease] = {}

    @contextmanager
    def at_work(self, job: Job, cost: Callable[[Stage], float]) -> Iterator[None]:
        """Queue what waits for nothing, and keep the engine open for the block, which runs it and the rest."""
        priorities = self._graph.priorities(cost)
        self._rank = {key: (-priorities[key], index) for index, key in enumerate(self._graph.stages)}
        for key in [key for key in self._graph.stages if key in self.unsettled]:
            self._enlist(key)
        with terminable(), one_thread():  # as in a worker, for the same bits
            self._engine.start(job)
            try:
                yield
            except BaseException:
                self._engine.kill()
                raise
            finally:
                for lease in self._leases.values():
                    lease.release()

    def settle_known(self, wanted: Sequence[Stage]) -> None:
        """Take what earlier runs left: artifacts first, so that a failure skips only what is not there."""
        self.unsettled.update(stage.key for stage in wanted)
        self._unprepared.update(stage.key for stage in wanted if stage.kind == "prepare")
        for stage in wanted:
            if stage.key in self.unsettled and self._done(stage):
                self._cached(stage)
        for stage in wanted:
            if stage.key in self.unsettled and (failure := self._kept_failure(stage.key)) is not None:
                self._fail(stage, StageReport(failure))

    def _enlist(self, key: str) -> None:
        """Queue a stage, or let it wait for its inputs; those that are lost are made again."""
        for need in self._graph.needs[key]:
            if need not in self.unsettled and not self._done(self._graph.stages[need]):
                self._revive(need)
        self._missing[key] = sum(need in self.unsettled for need in self._graph.needs[key])
        if not self._missing[key]:
            self._push(key)

    def _revive(self, key: str) -> None:
        """Run a stage whose artifact was there, or whose run was not asked for."""
        for settled in (self._outcome.cached, self._outcome.finished):
            if key in settled:
                settled.remove(key)
        self.unsettled.add(key)
        self._revived[key] = time.monotonic()
        for dependant in self._graph.dependants[key]:
            if dependant in self.unsettled and dependant in self._missing:
                self._missing[dependant] += 1
        self._enlist(key)

    def hand_out(self) -> None:
        """Queue again what another process ran, and fill the free slots."""
        for key in [key for key, due in self._elsewhere.items() if due <= time.monotonic()]:
            del self._elsewhere[key]
            self._held.discard(key)
            self._push(key)
        while (heap := self._ready.open(self._at_work())) is not None:
            if (stage := self._take(heap)) is not None:
                self._tell("started", stage)
                self._running[self._engine.submit(stage)] = _Running(stage, 1)

    def next_here(self) -> Stage | None:
        """Return a stage for this process to run, while the workers are busy with theirs; None where there is none."""
        return self._take(self._ready.here) if self._ready.here else None

    @contextmanager
    def in_this_process(self, stage: Stage) -> Iterator[Attempt]:
        """Settle a stage that the block runs."""
        began = time.monotonic()
        self._tell("started", stage)
        with switches_kept(), Attempt("inline" if self._engine.in_process else "parent") as attempt:
            yield attempt
        self._conclude(stage, attempt.report, began)

    def collect(self) -> None:
        """Wait until a stage ends, a limit is due or another look is; then take in what ended."""
        pause = self._pause()
        if self._running:
            done, _ = wait(self._running, timeout=pause, return_when=FIRST_COMPLETED)
        else:
            done = set()
            if pause:
                time.sleep(pause)
        for future in sorted(done, key=lambda future: self._rank[self._running[future].stage.key]):
            running, report = self._running.pop(future), future.result()
            stage, failure = running.stage, report.failure
            if failure is None or failure.status != "killed":
                self._conclude(stage, report, running.began)
            elif running.tries < _ATTEMPTS:
                self._tell("retried", stage, time.monotonic() - running.began, report)
                self._running[self._engine.submit(stage)] = _Running(stage, running.tries + 1)
            else:
                final = replace(failure, reason=f"{failure.reason}, {running.tries} times")
                self._conclude(stage, replace(report, failure=final), running.began)

    def _pause(self) -> float | None:
        tick = self._engine.tick() if self._running else None
        if self._ready.here or self._ready.open(self._at_work()) is not None:
            return 0.0
        look = max(0.0, min(self._elsewhere.values()) - time.monotonic()) if self._elsewhere else None
        return min((pause for pause in (tick, look) if pause is not None), default=None)

    def _take(self, heap: Heap) -> Stage | None:
        """Pop the first stage of a heap and take its lease; None where it need not or cannot run now."""
        key = heapq.heappop(heap)[1]
        if key not in self.unsettled or self._missing[key]:  # settled since, or waits for an input again
            self._held.discard(key)
            return None
        stage, lease = self._graph.stages[key], self._store.try_lease(key)
        if self._done(stage):  # asked with the lease in hand: nobody can add it from here on
            self._cached(stage)
        elif (failure := self._kept_failure(key)) is not None:
            self._fail(stage, StageReport(failure))
        elif lease is not None:
            self._leases[key] = lease
            return stage
        else:
            self._elsewhere[key] = time.monotonic() + _NEXT_LOOK
            if key not in self._waiting:
                self._waiting.add(key)
                self._tell("waiting", stage)
        if lease is not None:
            lease.release()
        return None

    def _conclude(self, stage: Stage, report: StageReport, began: float) -> None:
        """Settle a stage that ran, or run it once more where it failed for want of an input; give its lease back."""
        self._held.discard(stage.key)
        seconds, failure = time.monotonic() - began, report.failure
        if failure is None and not self._appears(stage):
            failure = Failure("failed", "the stage ended without writing its artifact")
            report = replace(report, failure=failure)
        if failure is None:
            self._outcome.finished.append(stage.key)
            self._settle(stage)
            self._tell("finished", stage, seconds, report)
        elif self._heal(stage, began):
            self._tell("retried", stage, seconds, report)
        else:
            if failure.kept:
                self._store.record_failure(stage.key, failure, stage)
            self._fail(stage, report, seconds)
        self._leases.pop(stage.key).release()

    def _heal(self, stage: Stage, began: float) -> bool:
        """Run a failed stage again, after its inputs, where one of those was lost; False where none was."""
        lost = [
            need
            for need in self._graph.needs[stage.key]
            if self._revived.get(need, -1.0) > began or not self._done(self._graph.stages[need])
        ]
        if not lost or stage.key in self._healed:
            return False
        self._healed.add(stage.key)
        del self._missing[stage.key]
        self._enlist(stage.key)
        return True

    def _cached(self, stage: Stage) -> None:
        self._outcome.cached.append(stage.key)
        self._settle(stage)
        self._tell("cached", stage)

    def _settle(self, stage: Stage) -> None:
        self.unsettled.discard(stage.key)
        self._held.discard(stage.key)
        for key in self._graph.dependants[stage.key]:
            if key in self.unsettled and key in self._missing:
                self._missing[key] -= 1
                if not self._missing[key]:
                    self._push(key)
        self._note_prepared(stage.key)

    def _fail(self, stage: Stage, report: StageReport, seconds: float = 0.0) -> None:
        """Settle a stage as failed, and as skipped all that waits for it; faults of the data end the run instead."""
        failure = report.failure
        assert failure is not None
        self.unsettled.discard(stage.key)
        self._outcome.failures.setdefault(stage.key, failure)
        self._tell("failed", stage, seconds, report)
        if failure.status == "data" and stage.key in self._unprepared:
            self._faults.append(f"cannot {stage.title}: {failure.reason}")
        else:
            self._skip_dependants(stage, failure)
        self._note_prepared(stage.key)

    def _skip_dependants(self, stage: Stage, failure: Failure) -> None:
        skipped = Failure("skipped", f"needs {stage.title or stage.key}: {failure.reason}", since=failure.since)
        at_work = {stage.key for stage in self._at_work()}  # these read the artifact before it was lost
        reached = list(self._graph.dependants[stage.key])
        for key in reached:  # grows while it is walked
            if key in self.unsettled and key not in at_work:
                self.unsettled.discard(key)
                self._outcome.failures.setdefault(key, skipped)
                self._tell("skipped", self._graph.stages[key], report=StageReport(skipped))
                reached.extend(self._graph.dependants[key])

    def _note_prepared(self, key: str) -> None:
        """Queue what was held back once every dataset is settled, unless one cannot be built from its files."""
        if self._unprepared == {key}:
            if self._faults:
                raise DataError("\n".join(sorted(self._faults)))
            self._unprepared.clear()
            for later, lacking in self._missing.items():
                if later in self.unsettled and not lacking:
                    self._push(later)
        self._unprepared.discard(key)

    def _push(self, key: str) -> None:
        stage = self._graph.stages[key]
        if key not in self._held and (stage.kind == "prepare" or not self._unprepared):
            self._held.add(key)
            self._ready.push(self._rank[key], stage)

    def _at_work(self) -> list[Stage]:
        return [running.stage for running in self._running.values()]

    def _done(self, stage: Stage) -> bool:
        return all(self._store.has(key) for key in (stage.key, *stage.outputs))

    def _appears(self, stage: Stage) -> bool:
        """Return True if the artifact of a stage that ended well is there; network file systems may show it late."""
        late = time.monotonic() + _LATE
        while not self._done(stage):
            if time.monotonic() > late:
                return False
            time.sleep(0.1)
            self._store.refresh(stage.key)
        return True

    def _kept_failure(self, key: str) -> Failure | None:
        return None if self._retry else self._store.failure(key)

    def _tell(self, kind: str, stage: Stage, seconds: float = 0.0, report: StageReport | None = None) -> None:
        if self._observer is not None:
            report = report or StageReport()
            self._observer(Event(kind, stage, seconds, report.worker, report.failure, report.detail))
