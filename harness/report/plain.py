"""Unfolded plain text for pipes, files and narrow terminals. Nothing is cut and nothing wraps."""

from __future__ import annotations

from rich.cells import cell_len

from harness.report.build import RunReport
from harness.report.table import Text, TextTable

RANK_SIGNS = {"best": " *", "second": " +"}
LEGEND = "* best, + second best of a column; equal means share a mark."


def render_plain(report: RunReport) -> str:
    """Render the whole report."""
    return "\n\n".join([report.title, *(plain_table(table) for table in report.tables)]) + "\n"


def plain_table(table: TextTable) -> str:
    """Render one table: title, entries, caption and notes with a sentence a line, selected configurations."""
    title = [table.title] if table.title else []
    return "\n\n".join([*title, *([_entries(table)] if table.shown else []), *notes(table, LEGEND)])


def notes(table: TextTable, legend: str) -> list[str]:
    """Return the paragraphs below a table."""
    footnotes = [f"[{number}] {note}" for number, note in enumerate(table.footnotes, start=1)]
    selected = ["Selected configurations:", *(f"  {line}" for line in table.selected)] if table.selected else []
    below = [*footnotes, *table.remarks(legend)]
    return ["\n".join(lines) for lines in (list(table.caption), below, selected) if lines]


def _entries(table: TextTable) -> str:
    """Align the columns, two spaces between them."""
    lines = [list(table.header), *([label(text, RANK_SIGNS) for text in row] for row in table.rows)]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(table.header))]
    rule = ["-" * size for size in widths]
    return "\n".join(
        "  ".join(text + " " * (size - cell_len(text)) for text, size in zip(line, widths, strict=True)).rstrip()
        for line in [lines[0], rule, *lines[1:]]
    )


def label(text: Text, signs: dict[str, str] | None = None) -> str:
    """Return an entry with flags, footnote numbers and, if given, the sign of its rank; on one line."""
    flags = f" {text.flags}" if text.flags else ""
    numbers = "".join(f" [{number}]" for number in text.notes)
    return " ".join(f"{text.text}{flags}{numbers}".split()) + (signs or {}).get(text.rank, "")
