"""The page as one HTML text, and as a file. No torch."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from harness import __version__
from harness.report.build import ReportOptions
from harness.report.html.forest import legend
from harness.report.html.view import COPIES, Page, build_page
from harness.report.table import one_line
from harness.results.rows import DatasetFacts, RunResults
from harness.results.run_record import PAGE, RunRecord
from harness.safe_io import json_text, write_output, write_text, writing
from harness.store import Store

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).resolve().parent
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
_SHOWN_ELSEWHERE = ("label", "notes", "skipped", "splits")


def write_page(
    record: RunRecord,
    results: RunResults,
    store: Store,
    output: Path | None = None,
    options: ReportOptions | None = None,
) -> Path:
    """Write the report of a run, by default into its folder, and return its path.

    Raises:
        FileError: the file cannot be written.
    """
    text = render_page(build_page(record, results, store, options))
    if output is not None:
        write_output(output, text)
        return output
    path = store.runs / record.id / PAGE
    with writing(path):
        write_text(path, text)  # which follows no link that is there
    return path


def render_page(page: Page) -> str:
    """Render the page as one HTML text without any reference to another file."""
    styles = (asset("vendor/uPlot.min.css"), asset("style.css"))
    scripts = (asset("vendor/uPlot.iife.min.js"), asset("report.js"))
    parts = {
        "analyses": ("Analyses", page.findings),
        "failures": ("What failed", page.failures),
        "timings": ("Stage timings", page.costs.rows),
        "provenance": ("Provenance", True),
    }
    template = environment().get_template("page.html.jinja")
    return template.render(
        page=page,
        version=__version__,
        policy=content_policy(styles, scripts),
        styles=styles,
        scripts=scripts,
        licence=asset("vendor/LICENSE"),
        parts=[(name, title) for name, (title, content) in parts.items() if content],
        copy_names=COPIES,
        data=script_json(page.data),
        curves=packed(page.curves),
        copies=[packed(table.copies) for table in page.tables],
    )


@cache
def environment() -> Environment:
    """Return the templates; everything that is put into them is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {
        "facts": dataset_facts,
        "legend": legend,
        "one_line": one_line,
        "provenance": flat,
        "quote": lambda text: quote(text, safe=""),
    }
    return templates


@cache
def asset(name: str) -> str:
    """Return a text file of this package."""
    return (FOLDER / name).read_text(encoding="utf-8")


def script_json(value: Any) -> str:
    """Return the value as JSON that cannot end or change the ``<script>`` element that holds it.

    ``<``, ``>``, ``&`` and the two line separators of JavaScript are written as escapes, which JSON allows wherever
    they can stand: in strings.
    """
    return _compact(value).translate(_ESCAPES)


def packed(value: Any) -> str:
    """Return the value as base64 of zlib-compressed JSON, for what is read only on demand."""
    return base64.b64encode(zlib.compress(_compact(value).encode(), 6)).decode()


def _compact(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json_text(value, indent=None).strip()


def content_policy(styles: Iterable[str], scripts: Iterable[str]) -> str:
    """Return a Content-Security-Policy under which the page can load nothing and run no code but its own."""
    style, script = (" ".join(map(_digest, texts)) for texts in (styles, scripts))
    return (
        f"default-src 'none'; style-src {style}; script-src {script}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def dataset_facts(dataset: DatasetFacts) -> list[tuple[str, str]]:
    """Return the facts of a dataset as names and texts, without empty ones."""
    facts = {name: value for name, value in vars(dataset).items() if name not in _SHOWN_ELSEWHERE}
    facts["splits"] = ", ".join(f"{name} ({role})" for name, role in dataset.splits.items())
    return flat(facts)


def flat(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested facts as names and texts, without empty ones."""
    pairs: list[tuple[str, str]] = []
    for name, value in facts.items():
        label = f"{prefix}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            pairs += flat(value, f"{label}: ")
        elif isinstance(value, (list, tuple)):
            pairs += [(label, " ".join(map(str, value)))] if value else []
        elif value not in (None, ""):
            pairs.append((label, {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)))
    return pairs
