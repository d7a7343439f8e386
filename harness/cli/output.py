"""Output of commands: data as JSON or as lines of text, tables, and files in the format of their ending."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UserError, did_you_mean
from harness.safe_io import json_text, parse_json, visible, write_output

if TYPE_CHECKING:
    from harness.registry.catalog import Catalog

FORMATS = ("terminal", "plain", "markdown", "latex", "csv", "json")
WEB_PAGE = "html"
_ENDINGS = {".txt": "plain", ".md": "markdown", ".tex": "latex", ".csv": "csv", ".json": "json", ".html": WEB_PAGE}


def chosen_format(style: str | None, output: Path | None, *, json: bool = False, page: bool = False) -> str:
    """Return the format of a table: the requested one, else that of the file's ending, else ``terminal``.

    Args:
        style: the format that ``--format`` or ``--html`` requests, or None.
        output: the file.
        json: ``--json`` requests JSON.
        page: the command can write a web page.

    Raises:
        UserError: two formats are requested; the file's ending means another, or none and none is requested.
    """
    if json and style not in (None, "json"):
        raise UserError(f"--json and {style} are two formats: leave one out")
    style = "json" if json else style
    if output is None:
        return style or "terminal"
    meant = _ENDINGS.get(output.suffix.lower())
    wanted = "plain" if style == "terminal" else style or meant
    if wanted is None or (wanted == WEB_PAGE and not page):
        known = ", ".join(f"{ending} ({name})" for ending, name in _ENDINGS.items() if page or name != WEB_PAGE)
        raise UserError(f"--output {output}: the ending chooses the format: {known}; or give --format")
    if meant not in (None, wanted):
        raise UserError(f"--output {output}: the ending {output.suffix} means {meant}, and {wanted} is asked for")
    return wanted


def require_known(option: str, value: str | None, known: Sequence[str], more: str = "") -> None:
    """Refuse a value that an option does not take; None means that the option is absent.

    Raises:
        UserError: it is none of the known ones; ``more`` ends the text.
    """
    if value is not None and value not in known:
        raise UserError(f"{option} {value}{did_you_mean(value, known)}; allowed: {', '.join(known)}{more}")


def emit(text: str, output: Path | None = None) -> None:
    """Print a text in characters that the output has, or write it to a file as a whole and print where.

    Raises:
        FileError: the file cannot be written.
    """
    if output is None:
        sys.stdout.write(visible(text))
        sys.stdout.flush()
        return
    write_output(output, text)
    print_lines([str(output)])


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text."""
    emit("".join(f"{line}\n" for line in lines))


def answer(json: bool, data: object, lines: Iterable[str] | None = None) -> None:
    """Print what a command has found: its data as JSON, or else its lines; without lines the data as YAML."""
    text = json_text(data)
    if json:
        sys.stdout.write(visible(text))
    elif lines is not None:
        print_lines(lines)
    else:
        import yaml

        emit(yaml.safe_dump(parse_json(text), sort_keys=False, allow_unicode=True, default_flow_style=None, width=110))


def say(text: str) -> None:
    """Print a line on the error stream; nothing in it can steer a terminal."""
    print(visible(text), file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Print a note on the error stream."""
    say(f"note: {text}")


def counted(number: int, noun: str) -> str:
    """``1 seed``, ``2 seeds``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return the lines of a table, aligned; ``right`` are the columns of numbers."""
    lines = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    justified = [str.rjust if position in right else str.ljust for position in range(len(headings))]
    return [
        "  ".join(justify(cell, width) for justify, cell, width in zip(justified, line, widths, strict=True)).rstrip()
        for line in lines
    ]


def tell_code(code: str) -> None:
    """Print a notice of code of a suite; for commands that say what a suite would do."""
    say(f"code of this suite: {code}")


def tell_plugins(catalog: Catalog) -> None:
    """Print the plugins that could not be loaded, with the reasons, and those that ``--no-plugins`` leaves out."""
    for broken in catalog.broken:
        say(f"warning: plugin {broken.plugin} was not loaded: {broken.reason}")
    for name in catalog.withheld:
        say(f"not loaded, as --no-plugins asks: {name}")
