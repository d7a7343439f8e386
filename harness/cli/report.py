"""``bench report``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion, options
from harness.cli.output import FORMATS, WEB_PAGE, chosen_format, emit, note, require_known
from harness.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report import Located, ReportOptions
    from harness.results.rows import RunResults
    from harness.results.run_record import RunRecord
    from harness.store import Store
CHECKPOINTS = ("suite", "best-val", "last", "both")


def report(
    run: options.Run,
    style: options.Format = None,
    output: options.OutputFile = None,
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", help=", ".join(CHECKPOINTS), autocompletion=completion.one_of(*CHECKPOINTS))
    ] = "suite",
    validation: Annotated[bool, typer.Option("--validation", help="Validation beside test.")] = False,
    differences: Annotated[bool, typer.Option("--differences", help="Difference to the reference row.")] = False,
    average: Annotated[bool, typer.Option("--average", help="Averages over datasets.")] = False,
    html: Annotated[
        bool, typer.Option("--html", help="Write a web page, by default report.html in the run's folder.")
    ] = False,
    statistics: Annotated[
        bool | None, typer.Option("--statistics/--no-statistics", help="Intervals, tests, ranks.", show_default="suite")
    ] = None,
    published: Annotated[
        str | None, typer.Option("--published", help="A paper's numbers beside ours, or none.", show_default="suite")
    ] = None,
    store: options.StoreDir = None,
    json: options.Json = False,
) -> None:
    """Show the table of a run from whatever is there, finished or not."""
    from harness.report import NONE, ReportOptions
    from harness.results.findings import load_findings
    from harness.results.published import load_published
    from harness.run.collect import collect
    from harness.run.find import find_run
    from harness.store import Store

    require_known("--format", style, FORMATS, "; for a web page: --html")
    require_known("--checkpoint", checkpoint, CHECKPOINTS)
    if html and (json or style is not None):
        raise UserError("--html is a format of its own: leave out --format and --json")
    asked = WEB_PAGE if html else "json" if json else style
    wanted = chosen_format(asked, output, page=True)
    if published not in (None, NONE):
        load_published(str(published))
    opened = Store(store)
    record = find_run(run, opened, note)
    results = collect(record, opened)
    if run != record.id:
        _tell_finished(record, opened)
    rules = ("best-val", "last") if checkpoint == "both" else (checkpoint,)
    chosen = ReportOptions(rules, validation, differences, average, statistics, published)
    if wanted == WEB_PAGE:
        from harness.report.html.page import write_page

        print(write_page(record, results, opened, output, chosen))
        return
    show(results, wanted, chosen, output, load_findings(opened.runs / record.id))


def _tell_finished(record: RunRecord, store: Store) -> None:
    """The latest run is shown, finished or not; where it was cut short, a finished one may be what is looked for."""
    from harness.run.find import finished_before

    finished = finished_before(record, store)
    if finished is not None:
        note(f"an earlier finished run is there: bench report {finished.id}")


def show(
    results: RunResults,
    style: str,
    chosen: ReportOptions | None = None,
    output: Path | None = None,
    findings: Sequence[Located] = (),
) -> None:
    """Print a report, or write it to a file; ``findings`` are the run's analyses."""
    from harness.report import make_report, render

    made = make_report(results, chosen, findings)
    if style == "terminal" and sys.stdout.isatty():
        from rich.console import Console

        from harness.report.terminal import print_report

        print_report(made, Console())
        return
    text = render(made, "plain" if style == "terminal" else style)
    emit(text, output)
