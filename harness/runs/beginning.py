"""The record of a run that has not begun: what its report must know of its suite. No torch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from harness.provenance import provenance
from harness.results import DatasetFacts, MethodFacts, RunResults
from harness.runs.named import named_files
from harness.runs.record import CellRecord, RunRecord, path_text
from harness.runs.session import Session
from harness.spec import ComponentSpec
from harness.suite.files import installed_name


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
    return RunRecord(
        id=run_id,
        suite_path=path_text(suite.path),
        suite_files=suite.files,
        installed=installed_name(suite.path),
        results=_skeleton(session, run_id),
        cells=cells,
        prepared={cell.dataset: plan.stages[plan.stages[cell.score].inputs[0]].key for cell in plan.cells},
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        provenance={
            **provenance(suite.plugins),
            "named": named_files(suite, session.catalog, session.store.file_digest),
        },
    )


def _skeleton(session: Session, run_id: str) -> RunResults:
    suite = session.suite
    return RunResults(
        suite=suite.name,
        run=run_id,
        protocol=suite.protocol,
        seeds=suite.seeds,
        datasets=tuple(_dataset_facts(session, dataset.label, dataset.component) for dataset in suite.datasets),
        methods=suite.methods,
        entries=tuple(_method_facts(session, row) for row in suite.rows),
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


def _method_facts(session: Session, row: Any) -> MethodFacts:
    first = row.configurations[0]
    learner = session.catalog.get(first.learner.kind, first.learner.name)
    uses_env = first.environment is not None and "environments" in learner.traits.get("needs", ())
    oracle = set(learner.traits.get("oracle", ()))
    if uses_env:
        oracle |= set(session.catalog.get("environment", first.environment.name).traits.get("oracle", ()))
    return MethodFacts(
        dataset=row.dataset,
        method=row.method,
        configurations={configuration.id: dict(configuration.values) for configuration in row.configurations},
        select=row.select,
        environments=component_text(session, first.environment) if uses_env else "",
        oracle=tuple(sorted(oracle)),
        uses_validation_labels=bool(learner.traits.get("uses_validation_labels")),
    )


def component_text(session: Session, spec: ComponentSpec) -> str:
    """A component with its values as a suite would write it, e.g. ``random(2)``."""
    entry = session.catalog.get(spec.kind, spec.name)
    values = {**entry.defaults, **spec.params}
    positional = entry.traits.get("positional")
    shown = {name: value for name, value in entry.changed(spec.params).items() if name != positional}
    inner = ([str(values[positional])] if positional else []) + [f"{name}={value}" for name, value in shown.items()]
    return f"{spec.name}({', '.join(inner)})" if inner else spec.name
