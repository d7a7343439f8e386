"""The report on a terminal: a rich table where it fits, unfolded plain text everywhere else."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text as RichText

from harness.report.block import Block
from harness.report.build import Report, Section
from harness.report.layout import Grid
from harness.report.plain import block_text, encodable, label, notes, plain, section_text

STYLES = {"best": "bold", "second": "underline"}
LEGEND = "Bold: best, underlined: second best of a column."


def print_report(report: Report, console: Console) -> None:
    """Print all sections; on a pipe, a dumb terminal or one too narrow for the table, as unfolded plain text."""
    if not console.is_terminal or console.is_dumb_terminal:
        _write(console, plain(report))
        return
    _write(console, report.title + "\n")
    for section in report.sections:
        _write(console, "\n")
        _print_section(section, console)


def _print_section(section: Section, console: Console) -> None:
    table = _table(section.grid, console.encoding)
    if Measurement.get(console, console.options.update(max_width=10_000), table).maximum > console.width:
        _write(console, section_text(section) + "\n")
        return
    console.print(table)
    for paragraph in notes(section, LEGEND):
        console.print(encodable(paragraph, console.encoding), markup=False, highlight=False)
    for block in section.blocks:
        print_block(block, console)


def print_block(block: Block, console: Console) -> None:
    """Print a table beside the main one, as unfolded plain text where it does not fit."""
    _write(console, "\n")
    table = _table(block.grid, console.encoding)
    if Measurement.get(console, console.options.update(max_width=10_000), table).maximum > console.width:
        _write(console, block_text(block) + "\n")
        return
    console.print(RichText(encodable(block.title, console.encoding), style="bold"))
    if block.grid.rows:
        console.print(table)
    notes = [f"[{number}] {text}" for number, text in enumerate(block.grid.footnotes, start=1)]
    for sentence in [*notes, *block.told]:
        console.print(encodable(sentence, console.encoding), markup=False, highlight=False)


def _table(grid: Grid, encoding: str) -> Table:
    table = Table(header_style="bold")
    for position, heading in enumerate(grid.header):
        table.add_column(RichText(encodable(heading, encoding)), justify="left" if position < grid.words else "right")
    for row in grid.rows:
        table.add_row(*(RichText(encodable(label(text), encoding), style=STYLES.get(text.rank, "")) for text in row))
    return table


def _write(console: Console, text: str) -> None:
    """Write past rich's folding at the width it assumes."""
    console.file.write(encodable(text, console.encoding))
    console.file.flush()
