"""``bench runs``."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli import options
from harness.cli.main import app


@app.command()
def runs(
    suite: Annotated[str | None, typer.Argument(help="Only runs of this suite.")] = None,
    store: options.StoreDir = None,
    json: options.Json = False,
) -> None:
    """List the runs in a store, the latest last."""
    from harness.results import dumps
    from harness.runs.find import all_runs
    from harness.store import Store

    records = [record for record in all_runs(Store(store)) if suite in (None, record.results.suite)]
    if json:
        rows = [
            {"id": r.id, "suite": r.results.suite, "started": r.started, "status": r.status, "cells": len(r.cells)}
            for r in records
        ]
        print(dumps({"runs": rows}), end="")
        return
    for record in records:
        overrides = f"  {' '.join(record.results.overrides)}" if record.results.overrides else ""
        print(f"{record.id}  {record.status:<11}  {len(record.cells)} cells{overrides}")
    if not records:
        print("no runs" + (f" of {suite}" if suite else ""))
