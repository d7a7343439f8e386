"""``bench analyse``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.completion import complete_analyses
from harness.cli.options import Datasets, Folders, Json, Methods, RetryFailed, Run, Sets, Workers
from harness.cli.output import emit, note, print_json
from harness.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.results.findings import Finding
    from harness.run.session import Session
    from harness.suite.spec import AnalysisSpec


def analyse(
    run: Run,
    folders: Folders,
    workers: Workers,
    names: Annotated[
        list[str] | None, typer.Argument(help="Analyses; none for the suite's own.", autocompletion=complete_analyses)
    ] = None,
    sets: Sets = None,
    datasets: Datasets = None,
    methods: Methods = None,
    retry_failed: RetryFailed = False,
    json: Json = False,
) -> None:
    """Analyse the cells of a stored run: tables and figures. Nothing that is stored is trained again."""
    from harness.cli.progress import make_progress
    from harness.results.findings import load_findings
    from harness.run.execute import execute_analyses
    from harness.run.find import find_run, saved_suite
    from harness.run.session import open_session

    opened = folders.open_store()
    record = find_run(run, opened, note)
    given = folders.session()
    session = open_session(str(saved_suite(record, opened)), given)
    specs = _specs(session, names or [], sets or [], datasets or [], methods or [])
    chosen = workers.options(retry_failed=retry_failed)
    with make_progress(session, quiet=json) as progress:
        findings = execute_analyses(session, chosen, progress.observe, record, specs)
    labels = {finding.label for finding in findings}
    _show([item for item in load_findings(opened.runs / record.id) if item[0].label in labels], json)
    raise typer.Exit(1 if any(finding.status != "ok" for finding in findings) else 0)


def _show(findings: Sequence[tuple[Finding, Path]], json: bool) -> None:
    from harness.report.layout import finding_json, finding_table
    from harness.report.plain import plain_table

    if json:
        print_json({"analyses": [finding_json(*item) for item in findings]})
        return
    text = "\n\n".join(plain_table(finding_table(*item)) for item in findings) + "\n"
    emit(text)


def _specs(
    session: Session, names: list[str], sets: list[str], datasets: list[str], methods: list[str]
) -> list[AnalysisSpec]:
    """Return the suite's own analyses, or the named ones with the options' values."""
    from harness.suite.analyses import named_analyses, read_analyses
    from harness.suite.components import Parts
    from harness.suite.tree import Problems

    if not names:
        if not session.suite.analyses:
            known = ", ".join(session.catalog.names("analysis"))
            raise UserError(f"the suite has no 'analyses'; name one or more: {known}")
        if sets or datasets or methods:
            print("warning: --set, --datasets and --methods go with a named analysis", file=sys.stderr)
        return list(session.suite.analyses)
    problems = Problems()
    table = named_analyses(names, sets, {"datasets": datasets, "methods": methods}, problems)
    suite = session.suite
    declared = {dataset.label: session.facts.declare(dataset.component) for dataset in suite.datasets}
    known_labels = {"datasets": list(declared), "methods": list(suite.methods)}
    specs = read_analyses(table, Parts(session.catalog, problems), datasets=declared, known=known_labels)
    problems.check()
    return list(specs)
