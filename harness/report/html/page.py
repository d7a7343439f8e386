"""The page as text, and as a file. No torch."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness._version import __version__
from harness.errors import UserError
from harness.report.build import Options
from harness.report.html.embed import FOLDER, asset, content_policy, packed, script_json
from harness.report.html.view import COPIES, Page, build_page
from harness.report.html.words import dataset_facts, flat, memory, moment, seconds
from harness.report.text import one_line
from harness.results.rows import RunResults
from harness.results.run_record import PAGE, RunRecord
from harness.safe_io import write_text
from harness.store import Store

if TYPE_CHECKING:
    from jinja2 import Environment

_COPY_NAMES = {"latex": "LaTeX", "markdown": "Markdown", "csv": "CSV"}


def write_page(
    record: RunRecord, results: RunResults, store: Store, output: Path | None = None, options: Options | None = None
) -> Path:
    """Write the report of a run, by default into its folder, and return where.

    Raises:
        UserError: the file cannot be written.
    """
    path = store.runs / record.id / PAGE if output is None else output
    text = render_page(build_page(record, results, store, options))
    try:
        write_text(path, text)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    return path


def render_page(page: Page) -> str:
    """The page as one HTML text without any reference to another file."""
    styles = (asset("vendor/uPlot.min.css"), asset("style.css"))
    scripts = (asset("vendor/uPlot.iife.min.js"), asset("report.js"))
    template = _environment().get_template("page.html.jinja")
    return template.render(
        page=page,
        version=__version__,
        policy=content_policy(styles, scripts),
        styles=styles,
        scripts=scripts,
        licence=asset("vendor/LICENSE"),
        parts=_parts(page),
        styles_of_copy=[(style, _COPY_NAMES[style]) for style in COPIES],
        data=script_json(page.data),
        curves=packed(page.curves),
        copies=[packed(texts) for texts in page.copies],
    )


@cache
def _environment() -> Environment:
    """The templates; everything that is put into them is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "facts": dataset_facts,
        "flags": lambda text: f" {text}" if text else "",
        "first_word": lambda text: text.split()[0],
        "memory": memory,
        "moment": moment,
        "one_line": one_line,
        "provenance": flat,
        "seconds": seconds,
    }
    return made


def _parts(page: Page) -> list[tuple[str, str]]:
    """The sections below the tables, as address and title."""
    parts = [("analyses", "Analyses")] if page.findings else []
    parts += [("failures", "What failed")] if page.failures else []
    parts += [("timings", "Stage timings")] if page.costs else []
    return [*parts, ("provenance", "Provenance")]
