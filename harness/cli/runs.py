"""``bench runs`` and ``bench export``."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.completion import complete_cells, complete_runs
from harness.cli.options import Json, Run, StoreDir
from harness.cli.output import answer, counted, note, print_lines, require_known
from harness.errors import UserError, did_you_mean
from harness.safe_io import writing

if TYPE_CHECKING:
    from harness.results.run_record import RunRecord


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
    cell: Annotated[
        str, typer.Option("--cell", help="Only the cell with this id.", autocompletion=complete_cells)
    ] = "",
    store: StoreDir = None,
) -> None:
    """Write results, weights or an archive of a run to a folder. The archive has all that it takes to run it again."""
    from harness.run.export import WRITERS, Export
    from harness.run.find import find_run
    from harness.store import Store

    wanted = dict.fromkeys(item.strip() for given in what or ["results"] for item in given.split(","))
    for item in wanted:
        require_known("--what", item, WHAT)
    if "parquet" in wanted and find_spec("pyarrow") is None:  # before anything is written
        raise UserError("--what parquet needs pyarrow: pip install 'equad-bench[parquet]'")
    opened = Store(store)
    record = find_run(run, opened, note)
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
