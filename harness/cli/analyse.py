"""``bench analyse``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.completion import complete_analyses
from harness.cli.options import Datasets, Folders, Json, Methods, RetryFailed, Run, Sets, Workers
from harness.cli.output import answer, note
from harness.cli.progress import show_progress
from harness.errors import UserError

if TYPE_CHECKING:
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
    from harness.report.layout import finding_json, finding_table
    from harness.report.plain import plain_table
    from harness.results.run_record import load_findings
    from harness.run.execute import execute_analyses
    from harness.run.find import find_run, saved_suite
    from harness.run.session import open_session

    opened = folders.open_store()
    record = find_run(run, opened, note)
    session = open_session(str(saved_suite(record, opened)), folders.session())
    specs = _specs(session, names or [], sets or [], {"datasets": datasets or [], "methods": methods or []})
    with show_progress(session, quiet=json) as observe:
        findings = execute_analyses(session, workers.options(retry_failed=retry_failed), observe, record, specs)
    labels = {finding.label for finding in findings}
    shown = [item for item in load_findings(opened.runs / record.id) if item[0].label in labels]
    tables = (plain_table(finding_table(*item)) for item in shown)
    answer(json, {"analyses": [finding_json(*item) for item in shown]}, ["\n\n".join(tables)])
    raise typer.Exit(1 if any(finding.status != "ok" for finding in findings) else 0)


def _specs(session: Session, names: list[str], sets: list[str], globs: dict[str, list[str]]) -> list[AnalysisSpec]:
    """Return the suite's own analyses, or the named ones with the options' values."""
    from harness.suite.analyses import named_analyses, read_analyses
    from harness.suite.components import Parts
    from harness.suite.tree import Problems

    suite = session.suite
    if not names:
        if sets or any(globs.values()):
            raise UserError("--set, --datasets and --methods go with a named analysis")
        if not suite.analyses:
            known = ", ".join(session.catalog.names("analysis"))
            raise UserError(f"the suite has no 'analyses'; name one or more: {known}")
        return list(suite.analyses)
    problems = Problems()
    parts = Parts(session.catalog, problems)
    declared = {dataset.label: session.facts.declare(dataset.component) for dataset in suite.datasets}
    specs = read_analyses(
        named_analyses(names, sets, globs, parts),
        parts,
        datasets=declared,
        known={"datasets": list(declared), "methods": list(suite.methods)},
    )
    problems.check()
    return list(specs)
