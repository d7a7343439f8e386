"""``bench runs``, ``bench export`` and ``bench analyse``: stored runs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.completion import complete_analyses, complete_runs
from harness.cli.options import Datasets, Folders, Json, Methods, RetryFailed, Run, Sets, StoreDir, Workers, stored_run
from harness.cli.output import answer, counted, print_lines, require_known
from harness.cli.progress import show_progress
from harness.errors import UserError, did_you_mean
from harness.safe_io import writing

if TYPE_CHECKING:
    from harness.results.run_record import RunRecord
    from harness.run.session import Session
    from harness.suite.spec import AnalysisSpec


def runs(
    suite: Annotated[
        str | None, typer.Argument(help="Only runs of this suite.", metavar="SUITE|RUN", autocompletion=complete_runs)
    ] = None,
    store: StoreDir = None,
    json: Json = False,
) -> None:
    """List the runs in a store, the latest last."""
    from harness.run.find import all_runs, no_run, runs_of
    from harness.store import Store

    opened = Store(store)
    every = all_runs(opened)
    records = every if suite is None else runs_of(suite, every)
    if suite is not None and not records:
        raise no_run(suite, opened, every)
    rows = [
        {
            "id": record.id,
            "suite": record.results.suite,
            "file": record.suite_path,
            "started": record.started,
            "status": record.status,
            "cells": len(record.cells),
            "lost": record.facts.get("lost", []),
        }
        for record in records
    ]
    answer(json, {"runs": rows}, _lines(records))


def _lines(records: list[RunRecord]) -> Iterator[str]:
    for record in records:
        cells, overrides = counted(len(record.cells), "cell"), " ".join(record.results.overrides)
        yield f"{record.id}  {record.status:<11}  {cells}  {record.suite_path}  {overrides}".rstrip()
        yield from (f"    {line}" for line in record.facts.get("lost", ()))
    if not records:
        yield "no runs"


WHAT = ("results", "parquet", "predictions", "checkpoints", "suite", "archive")


def export(
    run: Run,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")],
    what: Annotated[
        list[str] | None,
        typer.Option("--what", help=", ".join(WHAT) + "; repeatable, or with commas. Default: results."),
    ] = None,
    cell: Annotated[str, typer.Option("--cell", help="Only the cell with this id.")] = "",
    store: StoreDir = None,
) -> None:
    """Write results, weights or an archive of a run to a folder. The archive has all that it takes to run it again."""
    from harness.run.export import WRITERS, Export

    wanted = dict.fromkeys(item.strip() for given in what or ["results"] for item in given.split(","))
    for item in wanted:
        require_known("--what", item, WHAT)
    if "parquet" in wanted and find_spec("pyarrow") is None:  # before anything is written
        raise UserError("--what parquet needs pyarrow: pip install 'equad-bench[parquet]'")
    record, opened = stored_run(run, store)
    cells = [item for item in record.cells if cell in ("", item.id)]
    if not cells:
        hint = did_you_mean(cell, [item.id for item in record.cells])
        raise UserError(f"run {record.id} has no cell '{cell}'{hint}")
    with writing(output):
        output.mkdir(parents=True, exist_ok=True)
        chosen = Export(record, cells, opened, output)
        written = [path for item in wanted for path in WRITERS[item](chosen)]
    files = map(str, written if len(written) <= 8 else ())
    print_lines([*files, f"{counted(len(written), 'file')} in {output}"])


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
    from harness.run.find import saved_suite
    from harness.run.session import open_session

    record, opened = stored_run(run, folders.store)
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
