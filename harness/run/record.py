"""Write what a run leaves in its folder: its record before it begins, and its page. No torch."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from harness.engine.provenance import provenance
from harness.errors import DataError
from harness.plan import Plan
from harness.plan.build import shaped_by_validation
from harness.results.rows import DatasetFacts, MethodFacts, RunResults
from harness.results.run_record import PAGE, CellRecord, RunRecord, path_text
from harness.run.session import Session
from harness.run.suite_code import digests_from, named_files
from harness.store import Store
from harness.suite.files import installed_name
from harness.suite.spec import ComponentSpec, Row

_log = logging.getLogger(__name__)


def start_record(session: Session, run_id: str) -> RunRecord:
    """Return the record of a run that has not begun."""
    suite, plan = session.suite, session.plan
    named = named_files(suite, session.catalog, session.store.file_digest)
    return RunRecord(
        id=run_id,
        suite_path=path_text(suite.path),
        suite_files={**digests_from(suite.path.absolute().parent, named), **suite.files},
        installed=installed_name(suite.path),
        results=_results_without_rows(session, run_id),
        cells=_cells(plan),
        prepared={cell.dataset: plan.stages[plan.stages[cell.score].inputs[0]].key for cell in plan.cells},
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        provenance={
            **provenance(suite.plugins),
            "named": named,
            **({"optuna": version("optuna")} if suite.tune else {}),
        },
    )


def with_trials(record: RunRecord, session: Session) -> RunRecord:
    """Return the record with the trials that the session's plan has now."""
    return replace(record, results=_results_without_rows(session, record.id), cells=_cells(session.plan))


def _cells(plan: Plan) -> tuple[CellRecord, ...]:
    order = {key: position for position, key in enumerate(plan.stages)}
    return tuple(
        CellRecord(
            *cell.coordinates,
            id=cell.id,
            hyperparameters=dict(cell.configuration.values),
            train=cell.train,
            score=cell.score,
            needs={key: plan.stages[key].title for key in sorted(plan.ancestry(cell.score), key=order.__getitem__)},
        )
        for cell in plan.cells
    )


def _results_without_rows(session: Session, run_id: str) -> RunResults:
    suite, shaped = session.plan.suite, _shaped_by_validation(session)
    return RunResults(
        suite=suite.name,
        run=run_id,
        protocol=suite.protocol,
        seeds=suite.seeds,
        datasets=tuple(_dataset_facts(session, dataset.label, dataset.component) for dataset in suite.datasets),
        methods=suite.methods,
        entries=tuple(_method_facts(session, row, shaped.get((row.dataset, row.method), ())) for row in suite.rows),
        unsupported=suite.unsupported,
        overrides=suite.overrides,
        reference=suite.report.reference,
        published=suite.report.published,
        statistics=suite.report.statistics,
        tune=suite.tune,
    )


def _dataset_facts(session: Session, label: str, spec: ComponentSpec) -> DatasetFacts:
    declared = session.facts.declare(spec)
    values = {**session.catalog.get("dataset", spec.name).defaults, **spec.params}
    downloads = session.facts.downloads(spec)
    return DatasetFacts(
        label=label,
        metric=declared.task.metric,
        task=declared.task.kind,
        splits=dict(declared.splits),
        default_val=declared.default_val,
        validation=declared.validation,
        variant=declared.variant,
        departures=declared.departures,
        version=declared.version,
        licence="; ".join(dict.fromkeys(item.licence for item in downloads if item.licence)),
        citation="; ".join(dict.fromkeys(item.citation for item in downloads if item.citation)),
        notes=declared.notes,
        seed=values.get("seed"),
        split_seed=values.get("split_seed"),
    )


def _shaped_by_validation(session: Session) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return, for each dataset and method, the ids of the configurations whose training validation labels shape."""
    keys = shaped_by_validation(session.plan, session.catalog)
    ids: dict[tuple[str, str], dict[str, None]] = {}
    for cell in session.plan.cells:
        if cell.train in keys:
            ids.setdefault((cell.dataset, cell.method), {})[cell.config_id] = None
    return {row: tuple(shaped) for row, shaped in ids.items()}


def _method_facts(session: Session, row: Row, shaped: tuple[str, ...]) -> MethodFacts:
    first = row.configurations[0]
    learner = session.catalog.get(first.learner.kind, first.learner.name)
    environment = first.environment if "environments" in learner.traits.get("needs", ()) else None
    quantifier = first.pipeline.quantifier if first.pipeline else None
    readers = [spec for spec in (first.learner, environment, quantifier) if spec is not None]
    entries = [session.catalog.get(spec.kind, spec.name) for spec in readers]
    return MethodFacts(
        dataset=row.dataset,
        method=row.method,
        configurations={configuration.id: dict(configuration.values) for configuration in row.configurations},
        select=row.select,
        environments="" if environment is None else _component_text(session, environment),
        oracle=tuple(sorted({name for entry in entries for name in entry.traits.get("oracle", ())})),
        shaped_by_validation=shaped,
        departures=row.departures + session.suite.departures,
        pending=row.pending,
    )


def _component_text(session: Session, spec: ComponentSpec) -> str:
    """Write a component with its values as a suite would, e.g. ``random(2)``."""
    entry = session.catalog.get(spec.kind, spec.name)
    positional = entry.traits.get("positional")
    changed = [f"{name}={value}" for name, value in entry.changed(spec.params).items() if name != positional]
    if positional:
        changed.insert(0, str({**entry.defaults, **spec.params}[positional]))
    return f"{spec.name}({', '.join(changed)})" if changed else spec.name


def leave_page(record: RunRecord, results: RunResults, store: Store, *, anew: bool = True) -> Path | None:
    """Write the HTML report of a run into its folder, and return where; None, with a warning, where that fails.

    Args:
        anew: False where no stage was run: then an earlier run's page is returned, if it shows the same, since
            drawing one takes longer than all the rest of such a run.
    """
    folder = store.runs / record.id
    earlier = None if anew else _same_page(folder, record.suite_path)
    if earlier is not None:
        return earlier
    try:
        from harness.report.html.page import write_page

        return write_page(record, results, store)
    except Exception as error:
        _log.warning("no HTML report was written (%s: %s)", type(error).__name__, str(error).partition("\n")[0])
        return None


def _same_page(folder: Path, suite_path: str) -> Path | None:
    """Return the page of the latest run of the same suite, if that had the same settings and results."""
    label = folder.name[16:-5]  # between the time and the random end
    pages = sorted(path for path in folder.parent.glob(f"*-{label}-????/{PAGE}") if path.parent != folder)
    with suppress(OSError, DataError):
        for page in pages[-1:]:
            names = ("suite.yaml", "results.csv")
            same = all((page.parent / name).read_bytes() == (folder / name).read_bytes() for name in names)
            if same and RunRecord.load(page.parent).suite_path == suite_path:
                return page
    return None
