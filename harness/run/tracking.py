"""Tell trackers of a run, each in a thread of its own, so that none can fail it or hold it up. No torch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

from harness.engine import Event
from harness.engine.failures import reason_of
from harness.registry.discovery import load_one
from harness.results.rows import RunResults
from harness.results.run_record import CellRecord, RunRecord
from harness.run.collect import read_scores
from harness.run.session import Session
from harness.store import Store
from harness.suite.spec import ComponentSpec
from harness.tracker import TrackedCell, TrackedRun, TrackedStage, Tracker

PATIENCE = 30.0
"""Seconds that a tracker has to finish once the run has ended."""
_log = logging.getLogger(__name__)
_Call = Callable[[Tracker], None]


class _TrackerThread:
    """One tracker, its thread and the calls that wait for it."""

    def __init__(self, session: Session, spec: ComponentSpec) -> None:
        self._spec, self._entry = spec, session.catalog.get("tracker", spec.name)
        self._calls = SimpleQueue[_Call | None]()
        self._thread = Thread(target=self._work, name=f"bench-tracker-{spec.name}", daemon=True)
        self._thread.start()

    def call(self, call: _Call | None) -> None:
        """Queue a call; None is the last."""
        if self._thread.is_alive():
            self._calls.put(call)

    def _work(self) -> None:
        try:
            tracker: Tracker = load_one(self._entry)(**self._spec.params)
            while (call := self._calls.get()) is not None:
                call(tracker)
        except (Exception, SystemExit) as error:
            _log.warning("tracker '%s' is off: %s", self._spec.name, reason_of(error))

    def end(self) -> None:
        """Wait for what is queued."""
        self.call(None)
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            _log.warning("tracker '%s' did not finish within %.0f s and was left behind", self._spec.name, PATIENCE)


class Tracking:
    """All trackers of one run."""

    def __init__(self, session: Session, record: RunRecord) -> None:
        self._store = session.store
        self._told: set[str] = set()
        self.follow(record)
        self._threads = [_TrackerThread(session, spec) for spec in session.suite.trackers]
        run = TrackedRun(
            id=record.id,
            suite=record.results.suite,
            protocol=record.results.protocol,
            seeds=record.results.seeds,
            folder=session.store.runs / record.id,
            config=session.suite.resolved,
            provenance=record.provenance,
        )
        self._tell(lambda tracker: tracker.start(run))

    def follow(self, record: RunRecord) -> None:
        """Take over the cells of a record, to which a search adds."""
        self._record = record
        self._by_stage: dict[str, list[CellRecord]] = {}
        for cell in record.cells:
            for key in (cell.train, cell.score):
                self._by_stage.setdefault(key, []).append(cell)

    def _tell(self, call: _Call) -> None:
        for thread in self._threads:
            thread.call(call)

    def watch(self, event: Event) -> None:
        """Tell of an event of the scheduler, and of the cells that have ended with it."""
        if not self._threads:
            return
        reason = event.failure.reason.partition("\n")[0] if event.failure is not None else ""
        seconds = None if event.kind == "started" else event.seconds
        stage = TrackedStage(event.kind, event.stage.kind, event.stage.title, seconds, reason)
        self._tell(lambda tracker: tracker.stage(stage))
        if event.kind in ("failed", "skipped") or (event.kind == "finished" and event.stage.kind == "score"):
            failed = None if event.failure is None else (event.failure.status, reason)
            for cell in self._by_stage.get(event.stage.key, ()):
                self._cell(cell, failed, cached=False)

    def _cell(self, cell: CellRecord, failed: tuple[str, str] | None, *, cached: bool) -> None:
        if cell.id not in self._told:
            self._told.add(cell.id)
            self._tell(lambda tracker: tracker.cell(tracked(cell, self._store, failed, cached=cached)))

    def finish(self, results: RunResults, status: str) -> None:
        """Tell of the cells that were there before and of the end of the run, and wait a little for the trackers."""
        if not self._threads:
            return
        failures = {row.cell: (row.status, row.reason) for row in results.rows if row.value is None}
        known = {row.cell for row in results.rows}
        for cell in self._record.cells:
            if cell.id in known:
                self._cell(cell, failures.get(cell.id) if not self._store.has(cell.score) else None, cached=True)
        self._tell(lambda tracker: tracker.finish(_table(results), status))
        for thread in self._threads:
            thread.end()


def _table(results: RunResults) -> Sequence[Mapping[str, Any]]:
    from harness.report import make_report, to_json

    rows: Sequence[Mapping[str, Any]] = to_json(make_report(results))["rows"]
    return rows


def tracked(cell: CellRecord, store: Store, failed: tuple[str, str] | None, *, cached: bool) -> TrackedCell:
    """Return what the store holds of a cell; ``failed`` is its status and reason."""
    history = store.open(cell.train).read_json("history") if store.has(cell.train) else ()
    status, reason = failed or ("ok", "")
    return TrackedCell(
        *cell.coordinates,
        id=cell.id,
        hyperparameters=cell.hyperparameters,
        history=history,
        scores={
            f"{row.metric}/{row.split}/{row.rule}": row.value
            for row in read_scores(store, cell.score) or ()
            if row.value is not None
        },
        seconds=store.record(cell.train).get("seconds"),
        cached=cached,
        status=status,
        reason=reason,
    )
