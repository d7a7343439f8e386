"""The record of a run that has not begun: what its report must know of its suite. No torch."""

from __future__ import annotations

from datetime import UTC, datetime

from harness.engine.provenance import provenance
from harness.plan.build import shaped_by_validation
from harness.results.rows import DatasetFacts, MethodFacts, RunResults
from harness.results.run_record import CellRecord, RunRecord, path_text
from harness.run.named import digests_from, named_files
from harness.run.session import Session
from harness.suite.files import installed_name
from harness.suite.spec import ComponentSpec, Row


def start_record(session: Session, run_id: str) -> RunRecord:
    """The record of a run that has not begun."""
    suite, plan = session.suite, session.plan
    titles = {key: plan.stages[producer].title for key, producer in plan.producers.items()}
    order = {key: position for position, key in enumerate(plan.stages)}
    cells = tuple(
        CellRecord(
            id=cell.id,
            dataset=cell.dataset,
            method=cell.method,
            config_id=cell.configuration.id,
            hyperparameters=dict(cell.configuration.values),
            seed=cell.seed,
            train=cell.train,
            score=cell.score,
            needs={key: titles[key] for key in sorted(plan.ancestry(cell.score), key=order.__getitem__)},
        )
        for cell in plan.cells
    )
    named = named_files(suite, session.catalog, session.store.file_digest)
    return RunRecord(
        id=run_id,
        suite_path=path_text(suite.path),
        suite_files={**digests_from(suite.path.absolute().parent, named), **suite.files},
        installed=installed_name(suite.path),
        results=_skeleton(session, run_id),
        cells=cells,
        prepared={cell.dataset: plan.stages[plan.stages[cell.score].inputs[0]].key for cell in plan.cells},
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        provenance={**provenance(suite.plugins), "named": named},
    )


def _skeleton(session: Session, run_id: str) -> RunResults:
    suite, shaped = session.suite, _shaped_by_validation(session)
    return RunResults(
        suite=suite.name,
        run=run_id,
        protocol=suite.protocol,
        seeds=suite.seeds,
        datasets=tuple(_dataset_facts(session, dataset.label, dataset.component) for dataset in suite.datasets),
        methods=suite.methods,
        entries=tuple(_method_facts(session, row, shaped[row.dataset, row.method]) for row in suite.rows),
        overrides=suite.overrides,
        reference=suite.report.reference,
        published=suite.report.published,
        statistics=suite.report.statistics,
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
        version=declared.version,
        licence="; ".join(dict.fromkeys(item.licence for item in downloads if item.licence)),
        citation="; ".join(dict.fromkeys(item.citation for item in downloads if item.citation)),
        notes=declared.notes,
        seed=values.get("seed"),
        split_seed=values.get("split_seed"),
    )


def _shaped_by_validation(session: Session) -> dict[tuple[str, str], tuple[str, ...]]:
    """The ids of the configurations of each dataset and method whose training validation labels shape."""
    keys = shaped_by_validation(session.plan, session.catalog)
    found: dict[tuple[str, str], dict[str, None]] = {}
    for cell in session.plan.cells:
        ids = found.setdefault((cell.dataset, cell.method), {})
        if cell.train in keys:
            ids[cell.configuration.id] = None
    return {row: tuple(ids) for row, ids in found.items()}


def _method_facts(session: Session, row: Row, shaped: tuple[str, ...]) -> MethodFacts:
    first = row.configurations[0]
    learner = session.catalog.get(first.learner.kind, first.learner.name)
    environment = first.environment if "environments" in learner.traits.get("needs", ()) else None
    oracle = set(learner.traits.get("oracle", ()))
    if environment is not None:
        oracle |= set(session.catalog.get("environment", environment.name).traits.get("oracle", ()))
    return MethodFacts(
        dataset=row.dataset,
        method=row.method,
        configurations={configuration.id: dict(configuration.values) for configuration in row.configurations},
        select=row.select,
        environments="" if environment is None else component_text(session, environment),
        oracle=tuple(sorted(oracle)),
        shaped_by_validation=shaped,
    )


def component_text(session: Session, spec: ComponentSpec) -> str:
    """A component with its values as a suite would write it, e.g. ``random(2)``."""
    entry = session.catalog.get(spec.kind, spec.name)
    values = {**entry.defaults, **spec.params}
    positional = entry.traits.get("positional")
    shown = {name: value for name, value in entry.changed(spec.params).items() if name != positional}
    inner = ([str(values[positional])] if positional else []) + [f"{name}={value}" for name, value in shown.items()]
    return f"{spec.name}({', '.join(inner)})" if inner else spec.name
