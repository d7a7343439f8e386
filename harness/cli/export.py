"""``bench export``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options
from harness.cli.main import app
from harness.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from harness.runs.record import CellRecord, RunRecord
    from harness.store import Store

WHAT = ("results", "predictions", "checkpoints")


@app.command()
def export(
    run: Annotated[str, typer.Argument(help="A suite (its latest run) or the id of a run.", metavar="SUITE|RUN")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")],
    what: Annotated[str, typer.Option("--what", help=", ".join(WHAT) + ", or several with commas.")] = "results",
    cell: Annotated[str, typer.Option("--cell", help="Only the cell with this id.")] = "",
    store: options.StoreDir = None,
) -> None:
    """Write results (JSON, CSV), predictions (logits) or checkpoints (weights) of a run to a folder."""
    from harness.runs.find import find_run
    from harness.store import Store

    wanted = [item.strip() for item in what.split(",")]
    for item in wanted:
        if item not in WHAT:
            raise UserError(f"--what {item}{did_you_mean(item, WHAT)}; allowed: {', '.join(WHAT)}")
    opened = Store(store)
    record = find_run(run, opened)
    cells = [one for one in record.cells if cell in ("", one.id)]
    if not cells:
        known = [one.id for one in record.cells]
        raise UserError(f"run {record.id} has no cell '{cell}'{did_you_mean(cell, known)}")
    try:
        output.mkdir(parents=True, exist_ok=True)
        written = [path for item in wanted for path in _write(item, record, cells, opened, output)]
    except OSError as error:
        raise UserError(f"cannot write to {output}: {error.strerror or error}") from None
    print(f"{len(written)} files in {output}")


def _write(what: str, record: RunRecord, cells: list[CellRecord], store: Store, output: Path) -> list[Path]:
    if what == "results":
        return _results(record, cells, store, output)
    wanted = ("predictions",) if what == "predictions" else ("weights-",)
    written = []
    for cell in cells:
        if not store.has(cell.train):
            continue
        artifact = store.open(cell.train)
        for name in artifact.meta.files:
            if name.startswith(wanted):
                target = output / what / f"{cell.id}-{name}"
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(artifact.path(name), target)
                written.append(target)
    return written


def _results(record: RunRecord, cells: list[CellRecord], store: Store, output: Path) -> list[Path]:
    from harness.results import rows_to_csv, write_text
    from harness.runs.collect import collect

    ids = {cell.id for cell in cells}
    results = collect(record, store)
    results = results.with_rows(row for row in results.rows if row.cell in ids)
    paths = [output / "results.json", output / "results.csv", output / "run.json"]
    results.save(paths[0])
    write_text(paths[1], rows_to_csv(results.rows))
    record.save(output)
    return paths
