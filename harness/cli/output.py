"""Output of commands: files in the format of their ending, and text and small tables on standard output."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size

from harness.errors import UserError, did_you_mean
from harness.safe_io import visible

FORMATS = ("terminal", "plain", "markdown", "latex", "csv", "json")
WEB_PAGE = "html"
Rows = Sequence[Sequence[str]]
_ENDINGS = {
    ".txt": "plain",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".html": WEB_PAGE,
}
_OTHER_FILES = (".parquet", ".yaml", ".yml", ".safetensors", ".gz", ".tgz", ".zip")


def chosen_format(style: str | None, output: Path | None, *, page: bool = False) -> str:
    """Return the format of a table: the requested one, else that of the file's ending, else ``terminal``.

    Args:
        style: the format that ``--format``, ``--json`` or ``--html`` requests, or None.
        output: the file.
        page: the command can write a web page.

    Raises:
        UserError: the file's ending means another format, or no format and none is requested.
    """
    if output is None:
        return style or "terminal"
    meant = _ENDINGS.get(output.suffix.lower())
    if style is None:
        possible = {ending: name for ending, name in _ENDINGS.items() if page or name != WEB_PAGE}
        if meant is None or meant not in possible.values():
            known = ", ".join(f"{ending} ({name})" for ending, name in possible.items())
            raise UserError(f"--output {output}: the ending chooses the format: {known}; or give --format")
        return meant
    wanted = "plain" if style == "terminal" else style
    if meant not in (None, wanted):
        raise UserError(f"--output {output}: the ending {output.suffix} means {meant}, and {wanted} is asked for")
    return wanted


def note(text: str) -> None:
    """Print a note on the error stream."""
    print(visible(f"note: {text}"), file=sys.stderr)


def require_known(option: str, value: str | None, known: Sequence[str], more: str = "") -> None:
    """Refuse a value that an option does not take; None means that the option is absent.

    Raises:
        UserError: it is none of the known ones; ``more`` ends the text.
    """
    if value is not None and value not in known:
        raise UserError(f"{option} {value}{did_you_mean(value, known)}; allowed: {', '.join(known)}{more}")


def require_folder_name(path: Path, option: str) -> None:
    """Refuse a path with the ending of a file where a folder is written, unless that folder exists.

    Raises:
        UserError: it has the ending of a file.
    """
    if not path.is_dir() and path.suffix.lower() in (*_ENDINGS, *_OTHER_FILES):
        raise UserError(f"{option} {path}: this is the name of a file, and a folder is made there; name a folder")


def emit(text: str, output: Path | None = None) -> None:
    """Print a text, or write it to a file as a whole.

    Raises:
        UserError: the file cannot be written.
    """
    if output is None:
        from harness.safe_io import encodable

        sys.stdout.write(encodable(text, sys.stdout.encoding))
        sys.stdout.flush()
        return
    from harness.safe_io import write_text

    try:
        write_text(output, text)
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror or error}") from None


def print_json(data: object) -> None:
    """Print data as JSON that cannot steer a terminal."""
    from harness.safe_io import json_text

    print(visible(json_text(data)), end="")


def counted(number: int, noun: str) -> str:
    """``1 seed``, ``2 seeds``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    styles: Mapping[str, str] | None = None,
) -> None:
    """Print a table: by rich on a terminal, plain and aligned elsewhere.

    Args:
        headings: of the columns.
        rows: the cells, as long as the headings.
        right: columns of numbers.
        styles: cell text -> style, on a terminal.
    """
    from harness.safe_io import encodable

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
    """Return a table as aligned plain text."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    texts = []
    for line in lines:
        cells = (
            cell.rjust(width) if position in right else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        texts.append("  ".join(cells).rstrip())
    return "\n".join(texts)


def show_text(text: str = "") -> None:
    """Print a line in characters that the output can encode; on a terminal it is wrapped and indented."""
    from harness.safe_io import encodable

    lines = [text]
    if sys.stdout.isatty():
        import textwrap

        width = max(get_terminal_size().columns, 40)
        indent = " " * (len(text) - len(text.lstrip()) + 4)
        lines = textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    print(encodable("\n".join(lines), sys.stdout.encoding))
