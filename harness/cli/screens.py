"""Small tables and texts: rich on a terminal, plain and aligned elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from shutil import get_terminal_size

Rows = Sequence[Sequence[str]]


def show_table(
    headings: Sequence[str], rows: Rows, right: Collection[int] = (), styles: Mapping[str, str] | None = None
) -> None:
    """Print a table.

    Args:
        headings: of the columns.
        rows: the cells, as long as the headings.
        right: columns of numbers.
        styles: cell text -> style, on a terminal.
    """
    from harness.report.plain import encodable

    if not sys.stdout.isatty():
        print(encodable(table_text(headings, rows, right), sys.stdout.encoding))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for position, heading in enumerate(headings):
        words = " ".join([heading, *(row[position] for row in rows)]).split()
        least = max(map(len, words)) if position < len(headings) - 1 else None  # only the last column may break words
        table.add_column(heading, justify="right" if position in right else "left", overflow="fold", min_width=least)
    for row in rows:
        cells = (encodable(cell, sys.stdout.encoding) for cell in row)
        table.add_row(*(Text(cell, style=(styles or {}).get(cell, "")) for cell in cells))
    Console().print(table)


def table_text(headings: Sequence[str], rows: Rows, right: Collection[int] = ()) -> str:
    """The same as aligned plain text."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    made = []
    for line in lines:
        cells = (
            cell.rjust(width) if position in right else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        made.append("  ".join(cells).rstrip())
    return "\n".join(made)


def show_text(text: str = "") -> None:
    """Print a line in what the output can encode; on a terminal, wrapped with the rest indented."""
    from harness.report.plain import encodable

    lines = [text]
    if sys.stdout.isatty():
        import textwrap

        width = max(get_terminal_size().columns, 40)
        indent = " " * (len(text) - len(text.lstrip()) + 4)
        lines = textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    print(encodable("\n".join(lines), sys.stdout.encoding))
