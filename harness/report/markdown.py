"""The report as GitHub-flavoured Markdown, with footnotes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.report.build import RunReport
from harness.report.table import Text, TextTable

MARKS = {"best": "**", "second": "_"}
LEGEND = "Best of a column in bold, second best in italics; equal means share a mark."


def render_markdown(report: RunReport) -> str:
    """Render the whole report."""
    parts = [f"## {escape(report.title)}"]
    for number, section in enumerate(report.sections, start=1):
        prefix = f"{number}-" if len(report.sections) > 1 else ""
        parts.append(markdown_table(section.main, prefix))
        parts += [markdown_table(table, f"{prefix}{chr(97 + place)}") for place, table in enumerate(section.beside)]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: TextTable, prefix: str = "") -> str:
    """Render one table, under a heading if it has a title; ``prefix`` keeps its footnotes apart from others."""
    selected = ["Selected configurations:", "", *(f"- {escape(line)}" for line in table.selected)]
    parts = [
        f"### {escape(table.title)}" if table.title else "",
        _entries(table, prefix) if table.shown else "",
        " ".join(map(escape, table.caption)),
        "\n".join(f"- {escape(remark)}" for remark in table.remarks(LEGEND)),
        "\n".join(selected) if table.selected else "",
        *(f"[^{prefix}{number}]: {escape(note)}" for number, note in enumerate(table.footnotes, start=1)),
    ]
    return "\n\n".join(part for part in parts if part)


def _entries(table: TextTable, prefix: str) -> str:
    lines = [
        _line(escape(heading) for heading in table.header),
        _line("---" if i < table.words else "---:" for i in range(len(table.header))),
    ]
    return "\n".join([*lines, *(_line(_entry(text, prefix) for text in row) for row in table.rows)])


def _line(entries: Iterable[str]) -> str:
    return f"| {' | '.join(entries)} |"


def _entry(text: Text, prefix: str) -> str:
    mark = MARKS.get(text.rank, "")
    flags = f" {text.flags}" if text.flags else ""
    return f"{mark}{escape(text.text)}{mark}{flags}" + "".join(f"[^{prefix}{number}]" for number in text.notes)


def escape(text: str) -> str:
    """Return the text on one line, with nothing left that Markdown or HTML would read as markup."""
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", line)
