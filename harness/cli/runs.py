"""``bench runs``."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli import completion, options
from harness.safe_io import visible


def runs(
    suite: Annotated[
        str | None, typer.Argument(help="Only runs of this suite.", metavar="SUITE|RUN", autocompletion=completion.runs)
    ] = None,
    store: options.StoreDir = None,
    json: options.Json = False,
) -> None:
    """List the runs in a store, the latest last."""
    from harness.cli.output import counted
    from harness.results.rows import dumps
    from harness.run.find import all_runs, no_run, runs_of
    from harness.store import Store

    opened = Store(store)
    every = all_runs(opened)
    records = every if suite is None else runs_of(suite, every)
    if suite is not None and not records:
        raise no_run(suite, opened, every)
    if json:
        rows = [
            {
                "id": record.id,
                "suite": record.results.suite,
                "file": record.suite_path,
                "started": record.started,
                "status": record.status,
                "cells": len(record.cells),
            }
            for record in records
        ]
        print(visible(dumps({"runs": rows})), end="")
        return
    for record in records:
        overrides = f"  {' '.join(record.results.overrides)}" if record.results.overrides else ""
        cells = counted(len(record.cells), "cell")
        print(visible(f"{record.id}  {record.status:<11}  {cells}  {record.suite_path}{overrides}"))
    if not records:
        print("no runs")
