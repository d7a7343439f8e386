"""``bench report``, ``bench compare`` and ``bench compare-to-record``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.completion import complete_runs
from harness.cli.options import Datasets, Format, Json, Methods, OutputFile, Run, StoreDir, stored_run
from harness.cli.output import FORMATS, WEB_PAGE, chosen_format, emit, require_known
from harness.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report import Located, ReportOptions
    from harness.results.rows import RunResults


_RUN = "A suite (its latest complete run) or the id of a run."
CHECKPOINTS = ("suite", "best-val", "last")
Checkpoint = Annotated[str, typer.Option("--checkpoint", help=f"{', '.join(CHECKPOINTS)}; `bench report` also both.")]


def report(
    run: Run,
    style: Format = None,
    output: OutputFile = None,
    checkpoint: Checkpoint = "suite",
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
        str | None,
        typer.Option("--published", help="A paper's numbers, or record, beside ours, or none.", show_default="suite"),
    ] = None,
    store: StoreDir = None,
    json: Json = False,
) -> None:
    """Show the table of a suite's latest complete run. With the id of a run: of that run, finished or not."""
    from harness.report import NONE, ReportOptions
    from harness.results.published import RECORD, load_published
    from harness.results.run_record import load_findings
    from harness.run.collect import collect

    require_known("--format", style, FORMATS, "; for a web page: --html")
    require_known("--checkpoint", checkpoint, (*CHECKPOINTS, "both"))
    if html and style is not None:
        raise UserError("--html is a format of its own: leave out --format")
    wanted = chosen_format(WEB_PAGE if html else style, output, json=json, page=True)
    if published not in (None, NONE, RECORD):
        load_published(str(published))
    record, opened = stored_run(run, store)
    results = collect(record, opened)
    rules = ("best-val", "last") if checkpoint == "both" else (checkpoint,)
    chosen = ReportOptions(rules, validation, differences, average, statistics, published)
    if wanted == WEB_PAGE:
        from harness.report.html.page import write_page

        print(write_page(record, results, opened, output, chosen))
        return
    show(results, wanted, chosen, output, load_findings(opened.runs / record.id))


def show(
    results: RunResults,
    style: str,
    chosen: ReportOptions | None = None,
    output: Path | None = None,
    findings: Sequence[Located] = (),
) -> None:
    """Print a report, or write it to a file; ``findings`` are the run's analyses."""
    from harness.report import make_report, render

    table = make_report(results, chosen, findings)
    if style == "terminal" and sys.stdout.isatty():
        from rich.console import Console

        from harness.report.terminal import print_report

        print_report(table, Console())
        return
    text = render(table, "plain" if style == "terminal" else style)
    emit(text, output)


def compare(
    first: Annotated[str, typer.Argument(help=_RUN, metavar="FIRST", autocompletion=complete_runs)],
    second: Annotated[
        str,
        typer.Argument(
            help=f"{_RUN} Differences are this one minus the first.", metavar="SECOND", autocompletion=complete_runs
        ),
    ],
    style: Format = None,
    output: OutputFile = None,
    checkpoint: Checkpoint = "suite",
    datasets: Datasets = None,
    methods: Methods = None,
    force: Annotated[bool, typer.Option("--force", help="Compare although protocol, settings or data differ.")] = False,
    store: StoreDir = None,
    second_store: Annotated[
        Path | None, typer.Option("--second-store", help="Store of the second run.", show_default="--store")
    ] = None,
    json: Json = False,
) -> None:
    """Compare two runs, paired by dataset, method and seed. Refused where protocol, settings or data differ."""
    from harness.report.comparison import comparison_table, render_comparison
    from harness.results.aggregate import build_table
    from harness.results.compare import Side, narrowed
    from harness.results.compare import compare as compare_sides
    from harness.run.collect import collect

    require_known("--format", style, FORMATS)
    require_known("--checkpoint", checkpoint, CHECKPOINTS)
    wanted = chosen_format(style, output, json=json)
    rule = None if checkpoint == "suite" else checkpoint
    sides = []
    for name, folder in ((first, store), (second, second_store or store)):
        record, place = stored_run(name, folder)
        results = narrowed(collect(record, place), datasets or (), methods or ())
        sides.append(Side(record, place, build_table(results, rule)))
    compared = compare_sides(sides[0], sides[1], checkpoint=rule, force=force)
    if wanted == "terminal" and sys.stdout.isatty():
        from rich.console import Console

        from harness.report.terminal import print_table

        print_table(comparison_table(compared), Console())
        return
    emit(render_comparison(compared, "plain" if wanted == "terminal" else wanted), output)


def compare_to_record(
    run: Run,
    reference: Annotated[
        str | None,
        typer.Option("--reference", help="The row that tests compare with.", show_default="the first new one"),
    ] = None,
    style: Format = None,
    output: OutputFile = None,
    checkpoint: Checkpoint = "suite",
    store: StoreDir = None,
    json: Json = False,
) -> None:
    """Show recorded rows on the same data beside a run's.

    One table, with intervals and tests paired by seed; nothing is trained.
    """
    from harness.report import NONE, ReportOptions
    from harness.results.record import beside_record
    from harness.run.collect import collect

    require_known("--format", style, FORMATS)
    require_known("--checkpoint", checkpoint, CHECKPOINTS)
    record, opened = stored_run(run, store)
    rule, cpu = None if checkpoint == "suite" else checkpoint, str(record.provenance.get("cpu") or "")
    joined, remarks = beside_record(collect(record, opened), reference, rule, cpu)
    chosen = ReportOptions((checkpoint,), differences=True, statistics=True, published=NONE, remarks=remarks)
    show(joined, chosen_format(style, output, json=json), chosen, output)
