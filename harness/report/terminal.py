"""The report on a terminal: rich tables where they fit, unfolded plain text everywhere else."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text as RichText

from harness.report.build import RunReport
from harness.report.plain import label, notes, plain_table, render_plain
from harness.report.table import TextTable
from harness.safe_io import visible

STYLES = {"best": "bold", "second": "underline"}
LEGEND = "Bold: best, underlined: second best of a column; equal means share a mark."


def print_report(report: RunReport, console: Console) -> None:
    """Print all tables; on a pipe or a dumb terminal, or if a table is too wide, as unfolded plain text."""
    if not console.is_terminal or console.is_dumb_terminal:
        _write(console, render_plain(report))
        return
    _write(console, report.title + "\n")
    for table in report.tables:
        print_table(table, console)


def print_table(table: TextTable, console: Console) -> None:
    """Print one table, as unfolded plain text if it does not fit."""
    _write(console, "\n")
    drawn = _drawn(table)
    if Measurement.get(console, console.options.update(max_width=10_000), drawn).maximum > console.width:
        _write(console, plain_table(table) + "\n")
        return
    if table.title:
        console.print(RichText(visible(table.title), style="bold"))
    if table.shown:
        console.print(drawn)
    for paragraph in notes(table, LEGEND):
        console.print(visible(paragraph), markup=False, highlight=False, emoji=False)


def _drawn(table: TextTable) -> Table:
    drawn = Table(header_style="bold")
    for position, heading in enumerate(table.header):
        drawn.add_column(RichText(visible(heading)), justify="left" if position < table.words else "right")
    for row in table.rows:
        drawn.add_row(*(RichText(visible(label(text)), style=STYLES.get(text.rank, "")) for text in row))
    return drawn


def _write(console: Console, text: str) -> None:
    """Write past rich's folding at the width it assumes."""
    console.file.write(visible(text))
    console.file.flush()
