"""``bench compare``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion, options
from harness.cli.output import FORMATS, chosen_format, emit, note, require_known

if TYPE_CHECKING:
    from harness.results.compare import Comparison

CHECKPOINTS = ("suite", "best-val", "last")
_RUN = "A suite (its latest run) or the id of a run."


def compare(
    first: Annotated[str, typer.Argument(help=_RUN, metavar="FIRST", autocompletion=completion.runs)],
    second: Annotated[
        str,
        typer.Argument(
            help=f"{_RUN} Differences are this one minus the first.", metavar="SECOND", autocompletion=completion.runs
        ),
    ],
    style: options.Format = None,
    output: options.OutputFile = None,
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", help=", ".join(CHECKPOINTS), autocompletion=completion.one_of(*CHECKPOINTS))
    ] = "suite",
    datasets: options.Datasets = None,
    methods: options.Methods = None,
    force: Annotated[bool, typer.Option("--force", help="Compare although protocol or data differ.")] = False,
    store: options.StoreDir = None,
    second_store: Annotated[
        Path | None, typer.Option("--second-store", help="Store of the second run.", show_default="--store")
    ] = None,
    json: options.Json = False,
) -> None:
    """Compare two runs, paired by dataset, method and seed. Refused where protocol or data differ."""
    from harness.results.compare import compare as compare_sides
    from harness.results.compare import narrowed, open_side
    from harness.run.collect import collect
    from harness.run.find import find_run
    from harness.store import Store

    require_known("--format", style, FORMATS)
    require_known("--checkpoint", checkpoint, CHECKPOINTS)
    wanted = chosen_format("json" if json else style, output)
    rule = None if checkpoint == "suite" else checkpoint
    opened = Store(store)
    other = opened if second_store is None else Store(second_store)
    sides = []
    for name, place in ((first, opened), (second, other)):
        record = find_run(name, place, note)
        sides.append(open_side(record, collect(record, place), place, rule))
    one, two = (narrowed(side, datasets or (), methods or ()) for side in sides)
    _show(compare_sides(one, two, checkpoint=rule, force=force), wanted, output)


def _show(compared: Comparison, style: str, output: Path | None) -> None:
    from harness.report.comparison import comparison_table, render_comparison

    if style == "terminal" and sys.stdout.isatty():
        from rich.console import Console

        from harness.report.terminal import print_table

        print_table(comparison_table(compared), Console())
        return
    emit(render_comparison(compared, "plain" if style == "terminal" else style), output)
