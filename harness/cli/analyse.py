"""``bench analyse``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion, options
from harness.cli.main import app
from harness.cli.output import emit, note
from harness.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.results.findings import Finding
    from harness.run.session import Session
    from harness.suite.spec import AnalysisSpec


@app.command()
def analyse(
    run: Annotated[
        str,
        typer.Argument(
            help="A suite (its latest run) or the id of a run.", metavar="SUITE|RUN", autocompletion=completion.runs
        ),
    ],
    names: Annotated[
        list[str] | None, typer.Argument(help="Analyses; none for the suite's own.", autocompletion=completion.analyses)
    ] = None,
    sets: options.Sets = None,
    datasets: options.Datasets = None,
    methods: options.Methods = None,
    store: options.StoreDir = None,
    data_dir: options.DataDir = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Worker processes.", show_default="cores")] = None,
    engine: Annotated[
        str,
        typer.Option("--engine", help="processes or inline.", autocompletion=completion.one_of("processes", "inline")),
    ] = "processes",
    device: options.Device = "cpu",
    jobs_per_device: options.JobsPerDevice = None,
    retry_failed: options.RetryFailed = False,
    plugin: options.Plugins = None,
    json: options.Json = False,
) -> None:
    """Look at the cells of a run that is there: tables and figures. Nothing that is stored is trained again."""
    from harness.cli.progress import make_progress
    from harness.results.findings import load_findings
    from harness.run.execute import EngineOptions, execute_analyses
    from harness.run.find import find_run, saved_suite
    from harness.run.session import open_session
    from harness.store.store import Store

    opened = Store(store)
    record = find_run(run, opened, note)
    given = options.session_options(store=store, data_dir=data_dir, plugins=plugin)
    session = open_session(str(saved_suite(record, opened)), given)
    specs = _specs(session, names or [], sets or [], datasets or [], methods or [])
    chosen = EngineOptions(engine, jobs, retry_failed=retry_failed, device=device, jobs_per_device=jobs_per_device)
    with make_progress(session, quiet=json) as progress:
        found = execute_analyses(session, given, chosen, progress.observe, record, specs)
    labels = {item.label for item in found}
    _show([item for item in load_findings(opened.runs / record.id) if item[0].label in labels], json)
    raise typer.Exit(1 if any(item.status != "ok" for item in found) else 0)


def _show(found: Sequence[tuple[Finding, Path]], json: bool) -> None:
    from harness.report.findings import finding_block, finding_json
    from harness.report.plain import block_text
    from harness.results.rows import dumps

    if json:
        print(dumps({"analyses": [finding_json(*item) for item in found]}), end="")
        return
    text = "\n\n".join(block_text(finding_block(*item)) for item in found) + "\n"
    emit(text)


def _specs(
    session: Session, names: list[str], sets: list[str], datasets: list[str], methods: list[str]
) -> list[AnalysisSpec]:
    """The suite's own analyses, or those named, with the options' values."""
    from harness.suite.analyses import named_analyses, read_analyses
    from harness.suite.parts import Parts
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
    found = read_analyses(table, Parts(session.catalog, problems), datasets=declared, known=known_labels)
    problems.check()
    return list(found)
