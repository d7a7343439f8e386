"""Tell trackers of a run, each in a thread of its own, so that none can fail it or hold it up. No torch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

from harness.engine import Event
from harness.errors import BenchError
from harness.registry.discovery import load_one
from harness.results.rows import RunResults
from harness.results.run_record import CellRecord, RunRecord
from harness.run.session import Session
from harness.store.store import Store
from harness.tracker import TrackedCell, TrackedRun, TrackedStage, Tracker

PATIENCE = 30.0
"""Seconds that a tracker has to finish once the run has ended."""
_log = logging.getLogger(__name__)
_Call = Callable[[Tracker], None]


class _Line:
    """One tracker's thread and the calls that wait for it."""

    def __init__(self, name: str, make: Callable[[], Tracker]) -> None:
        self.name = name
        self._make, self._calls = make, SimpleQueue[_Call | None]()
        self._off = False
        self._thread = Thread(target=self._work, name=f"bench-tracker-{name}", daemon=True)
        self._thread.start()

    def call(self, call: _Call | None) -> None:
        """Queue a call; None is the last."""
        if not self._off:
            self._calls.put(call)

    def _work(self) -> None:
        try:
            tracker = self._make()
            while (call := self._calls.get()) is not None:
                call(tracker)
        except Exception as error:
            self._off = True
            _log.warning("tracker '%s' is off: %s", self.name, _reason(error))

    def end(self, seconds: float) -> None:
        """Wait for what is queued."""
        self.call(None)
        self._thread.join(seconds)
        if self._thread.is_alive():
            _log.warning("tracker '%s' did not finish within %.0f s and was left behind", self.name, seconds)


def _reason(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, BenchError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Tracking:
    """All trackers of one run."""

    def __init__(self, session: Session, record: RunRecord, *, patience: float = PATIENCE) -> None:
        self._store, self._record, self._patience = session.store, record, patience
        self._told: set[str] = set()
        self._by_stage: dict[str, list[CellRecord]] = {}
        for cell in record.cells:
            for key in (cell.train, cell.score):
                self._by_stage.setdefault(key, []).append(cell)
        self._lines = [_line(session, spec) for spec in session.suite.trackers]
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

    def _tell(self, call: _Call) -> None:
        for line in self._lines:
            line.call(call)

    def watch(self, event: Event) -> None:
        """An event of the scheduler."""
        if not self._lines:
            return
        reason = event.failure.reason.partition("\n")[0] if event.failure is not None else ""
        seconds = None if event.kind == "started" else event.seconds
        stage = TrackedStage(event.kind, event.stage.kind, event.stage.title, seconds, reason)
        self._tell(lambda tracker: tracker.stage(stage))
        ended = event.kind in ("failed", "skipped") or (event.kind == "finished" and event.stage.kind == "score")
        if ended:
            for cell in self._by_stage.get(event.stage.key, ()):
                failed = None if event.failure is None else (event.failure.status, reason)
                self._cell(cell, failed, cached=False)

    def _cell(self, cell: CellRecord, failed: tuple[str, str] | None, *, cached: bool) -> None:
        if cell.id in self._told:
            return
        self._told.add(cell.id)
        store = self._store
        self._tell(lambda tracker: tracker.cell(tracked(cell, store, failed, cached=cached)))

    def finish(self, results: RunResults, status: str) -> None:
        """The run has ended: tell of the cells that were there before, and wait a little for the trackers."""
        if not self._lines:
            return
        failures = {row.cell: (row.status, row.reason) for row in results.rows if row.value is None}
        known = {row.cell for row in results.rows}
        for cell in self._record.cells:
            if cell.id in known:
                self._cell(cell, failures.get(cell.id) if not self._store.has(cell.score) else None, cached=True)
        self._tell(lambda tracker: tracker.finish(_table(results), status))
        for line in self._lines:
            line.end(self._patience)


def _line(session: Session, spec: Any) -> _Line:
    entry = session.catalog.get("tracker", spec.name)
    return _Line(spec.name, lambda: load_one(entry)(**spec.params))


def _table(results: RunResults) -> Sequence[Mapping[str, Any]]:
    from harness.report.build import make_report, to_json

    rows: Sequence[Mapping[str, Any]] = to_json(make_report(results))["rows"]
    return rows


def tracked(cell: CellRecord, store: Store, failed: tuple[str, str] | None, *, cached: bool) -> TrackedCell:
    """What the store holds of a cell."""
    base = TrackedCell(
        id=cell.id,
        dataset=cell.dataset,
        method=cell.method,
        config_id=cell.config_id,
        seed=cell.seed,
        hyperparameters=cell.hyperparameters,
        cached=cached,
    )
    values: dict[str, Any] = {"seconds": store.record(cell.train).get("seconds")}
    if failed is not None:
        values |= {"status": failed[0], "reason": failed[1]}
    if store.has(cell.train):
        values["history"] = store.open(cell.train).read_json("history")
    if store.has(cell.score):
        rows = store.open(cell.score).read_json("scores")
        values["scores"] = {
            f"{row['metric']}/{row['split']}/{row['rule']}": row["value"] for row in rows if row["value"] is not None
        }
    return TrackedCell(**{**vars(base), **values})
