"""Run an opened suite: write its record, walk its stages, collect its results. No torch in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from harness.engine import Engine, EngineOptions, Event, Job, StageOutcomes
from harness.engine import run as run_stages
from harness.engine.devices import CPU
from harness.engine.process_state import terminable
from harness.engine.provenance import provenance
from harness.errors import BenchError, DataError
from harness.plan import build_plan
from harness.plan.status import Clock, needed
from harness.registry.planned_code import KEPT, KeptCode
from harness.results.rows import RunResults, rows_to_csv
from harness.results.run_record import RESULTS, Finding, RunRecord
from harness.results.selection import lost_candidates, without_value
from harness.run.analyses import analyse
from harness.run.collect import collect, without_rows
from harness.run.record import leave_page, start_record, with_trials
from harness.run.session import Session
from harness.run.tracking import Tracking
from harness.run.trials import TrialScores
from harness.safe_io import write_text, writing, yaml_text
from harness.stages.context import Context, run_stage
from harness.store import Failure, Stage, claim_run
from harness.suite.overrides import QUICK
from harness.suite.spec import AnalysisSpec

_log = logging.getLogger(__name__)
WORKER_LOG = "workers.log"
"""In the run folder: what plugins and libraries printed in the workers."""


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run: record, results, folder, analyses, HTML report; ``saved`` says if the folder holds them."""

    record: RunRecord
    results: RunResults
    folder: Path
    findings: tuple[Finding, ...] = ()
    page: Path | None = None
    saved: bool = True

    @property
    def exit_code(self) -> int:
        """0, or 1 where a cell has no result, an analysis failed, or the folder could not be written."""
        lost = not self.saved or self.record.failures or any(finding.status != "ok" for finding in self.findings)
        return 1 if lost or without_rows(self.record, self.results) or without_value(self.results) else 0


def execute(session: Session, options: EngineOptions, observe: Callable[[Event], None]) -> RunOutcome:
    """Run what must run, and leave a run folder whatever happens.

    Raises:
        KeyboardInterrupt: after the record and the results so far have been written; its argument is the run's id.
        DataError: a dataset cannot be built from its files; nothing has been trained.
        UserError: the store cannot be written to, or the engine cannot do what is asked.
    """
    store = session.store
    options.make()  # refuses what it cannot do before anything is written
    store.require_writable()
    with terminable(), claim_run(store, session.suite.name) as name:
        run = _begin(session, store.new_run(name))
        with options.make(run.folder / WORKER_LOG) as engine:
            work = _Work(session, options, engine, run.record.provenance, [observe, run.tracking.watch], name)
            with run.saved_when_cut_short(work.outcome.failures):
                for stages, again in work.rounds(run.follow):
                    work.run(stages, retry_failed=again)
                closed = run.close(work.outcome)
                if lost := without_rows(closed.record, closed.results):  # their scores were found damaged when read
                    work.run(needed(work.session.plan, store, lost))
                    closed = run.close(work.outcome)
            try:
                if specs := session.suite.analyses:
                    findings = analyse(work.session, closed.results, specs, run.folder, work.run)
                    closed = replace(closed, findings=tuple(findings))
            except KeyboardInterrupt as stop:
                leave_page(closed.record, closed.results, store)
                stop.args = (name,)
                raise
            finally:  # the cells are there, whatever ends the analyses
                run.tracking.finish(closed.results, closed.record.status)
        anew = bool(work.outcome.finished or work.outcome.failures or closed.findings)
        return replace(closed, page=leave_page(closed.record, closed.results, store, anew=anew))


def _begin(session: Session, folder: Path) -> _Recording:
    """Write a run's record before anything is run, and start the trackers."""
    record = start_record(session, folder.name)
    write_text(folder / "suite.yaml", yaml_text(session.suite.resolved))
    write_text(folder / KEPT, KeptCode.of(session.suite.plugins, session.catalog).to_json())
    record.save(folder)
    return _Recording(session, folder, record, Tracking(session, record))


@dataclass
class _Recording:
    """Save the record and the results of a run, and tell its trackers."""

    session: Session
    folder: Path
    record: RunRecord
    tracking: Tracking

    def follow(self, session: Session) -> None:
        """Take over the trials that the session's plan has now."""
        self.session, self.record = session, with_trials(self.record, session)
        self.record.save(self.folder)
        self.tracking.follow(self.record)

    def close(self, outcome: StageOutcomes) -> RunOutcome:
        """Collect the results and save them with the record."""
        cached = self.session.plan.stages.keys() - {*outcome.finished, *outcome.failures}
        facts = {"seconds": outcome.seconds, "stages": len(outcome.finished), "cached": len(cached)}
        status = "failed" if outcome.failures else "finished"
        done = replace(self.record, status=status, failures=dict(outcome.failures), facts=facts)
        results = collect(done, self.session.store)
        done = replace(done, facts={**facts, "lost": [told for _, told in lost_candidates(results)]})
        try:
            self._save(done, results)
        except BenchError as error:  # the table can be shown all the same
            _log.warning("%s; the run's folder is incomplete", error)
            return RunOutcome(done, results, self.folder, saved=False)
        return RunOutcome(done, results, self.folder)

    @contextmanager
    def saved_when_cut_short(self, failures: Mapping[str, Failure]) -> Iterator[None]:
        """Save what there is of a run where the block ends before its time."""
        try:
            yield
        except BaseException as error:
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            cut = replace(self.record, status=status, failures=dict(failures))
            refused = isinstance(error, DataError)  # such a run leaves no record
            with suppress(BenchError, OSError):  # where a full disk ended the run, it is not to hide that
                if not refused:
                    with writing(self.folder):
                        cut.save(self.folder)  # that it ended, even where the store cannot be read
                results = collect(cut, self.session.store)
                if not refused:
                    self._save(cut, results)
                    leave_page(cut, results, self.session.store)
                self.tracking.finish(results, status)
            if isinstance(error, KeyboardInterrupt):
                error.args = (self.record.id,)
            raise

    def _save(self, record: RunRecord, results: RunResults) -> None:
        with writing(self.folder):
            record.save(self.folder)
            results.save(self.folder / RESULTS)
            write_text(self.folder / "results.csv", rows_to_csv(results.rows))


def execute_analyses(
    session: Session,
    options: EngineOptions,
    observe: Callable[[Event], None],
    record: RunRecord,
    specs: Sequence[AnalysisSpec],
) -> list[Finding]:
    """Run analyses of a run that is there; its folder holds the findings.

    Raises:
        UserError: the store cannot be written to.
    """
    session.store.require_writable()
    folder = session.store.runs / record.id
    results = collect(record, session.store)
    with options.make(folder / WORKER_LOG) as engine:
        work = _Work(session, options, engine, provenance(session.suite.plugins), [observe], record.id)
        findings = analyse(session, results, specs, folder, work.run)
    leave_page(record, results, session.store)
    return findings


def run_targets(
    session: Session,
    options: EngineOptions,
    observe: Callable[[Event], None],
    targets: Sequence[str],
    log: Path | None = None,
) -> Failure | None:
    """Run what some stages of the plan need and nothing else; returns the first failure, if any. No run folder is left.

    ``log``: for what workers print.

    Raises:
        DataError: a dataset cannot be built from its files.
        UserError: the store cannot be written to.
    """
    session.store.require_writable()
    with options.make(log) as engine:
        work = _Work(session, options, engine, provenance(session.suite.plugins), [observe])
        work.run(needed(session.plan, session.store, targets, retry_failed=options.retry_failed))
    return next(iter(work.outcome.failures.values()), None)


@dataclass
class _Work:
    """The stages of one run at work, and their outcome so far; ``name`` is the run whose folder keeps code, if any."""

    session: Session
    options: EngineOptions
    engine: Engine
    made_by: Mapping[str, Any]
    observers: Sequence[Callable[[Event], None]]
    name: str = ""
    outcome: StageOutcomes = field(default_factory=StageOutcomes)

    def rounds(self, follow: Callable[[Session], None]) -> Iterator[tuple[list[Stage], bool]]:
        """Yield what the plan needs, then what its samplers choose by the scores, until all trials are there.

        The caller runs each round before it asks for the next.

        Args:
            follow: is told of each session whose plan has further trials.

        Yields:
            stages, and whether those of which a failure is kept run again.
        """
        first = self.session
        score = TrialScores(first.suite, first.facts, first.store, self.outcome.failures)
        targeted: set[str] = set()
        while targets := [cell.score for cell in self.session.plan.cells if cell.score not in targeted]:
            again = self.options.retry_failed and not targeted  # what fails in this run is not tried for each trial
            yield needed(self.session.plan, first.store, targets, retry_failed=again), again
            targeted.update(targets)
            if first.suite.pending:
                plan = build_plan(first.suite, first.catalog, first.facts, score)
                self.session = replace(first, plan=plan)
                follow(self.session)

    @property
    def run(self) -> Callable[..., StageOutcomes]:
        """:func:`harness.engine.run` for some stages; those of the plan run too where their artifact was lost."""
        store, device = self.session.store, next(iter(self.options.devices), CPU)
        context = Context(store, self.session.data_dir, device, self.session.catalog.core_files, self.name)
        clock = cache(lambda: Clock(store))  # read from the store only when there is something to run
        return partial(
            run_stages,
            store=store,
            job=Job(run_stage, context),
            engine=self.engine,
            reserve=self.session.plan.stages.values(),
            observer=self._watch,
            cost=lambda stage: clock().seconds(stage) or 1.0,
            retry_failed=self.options.retry_failed,
            outcome=self.outcome,
        )

    def _watch(self, event: Event) -> None:
        """Keep costs, and pass the event on."""
        if event.kind == "finished":
            with suppress(BenchError):  # what it cost is worth less than the stages to come
                if QUICK in self.session.suite.overrides:  # says nothing of how long the suite takes
                    self.session.store.keep_record(event.stage.key, self._costs(event))
                else:
                    self.session.store.record_run(event.stage, self._costs(event))
        for observe in self.observers:
            observe(event)

    def _costs(self, event: Event) -> dict[str, Any]:
        detail, placed = event.detail, dict(event.detail.get("placed", {}))
        return {
            "seconds": detail.get("wall"),
            "cpu_seconds": detail.get("cpu"),
            "peak_memory": detail.get("peak_rss"),
            "peak_device_memory": placed.pop("peak_device", None),
            "worker": event.worker,
            "provenance": {**self.made_by, **detail.get("machine", {}), **placed},
        }
