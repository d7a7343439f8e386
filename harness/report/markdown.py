"""The report as GitHub-flavoured Markdown, with footnotes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.report.build import Report, Section
from harness.report.layout import Text

MARKS = {"best": "**", "second": "_"}
LEGEND = "Best of a column in bold, second best in italics."


def markdown(report: Report) -> str:
    """The whole report."""
    parts = [f"## {escape(report.title)}"]
    for number, section in enumerate(report.sections, start=1):
        parts.append(_section(section, f"{number}-" if len(report.sections) > 1 else ""))
    return "\n\n".join(parts) + "\n"


def _section(section: Section, prefix: str) -> str:
    grid = section.grid
    lines = [
        _line(escape(heading) for heading in grid.header),
        _line("---" if i < grid.words else "---:" for i in range(len(grid.header))),
    ]
    lines += [_line(_entry(text, prefix) for text in row) for row in grid.rows]
    sentences = [*section.caption, *([LEGEND] if grid.ranked else [])]
    parts = ["\n".join(lines), " ".join(escape(sentence) for sentence in sentences)]
    if section.selected:
        parts.append("\n".join(["Selected configurations:", "", *(f"- {escape(line)}" for line in section.selected)]))
    parts += [f"[^{prefix}{number}]: {escape(note)}" for number, note in enumerate(grid.footnotes, start=1)]
    return "\n\n".join(parts)


def _line(entries: Iterable[str]) -> str:
    return f"| {' | '.join(entries)} |"


def _entry(text: Text, prefix: str) -> str:
    mark = MARKS.get(text.rank, "")
    flags = f" {text.flags}" if text.flags else ""
    return f"{mark}{escape(text.text)}{mark}{flags}" + "".join(f"[^{prefix}{number}]" for number in text.notes)


def escape(text: str) -> str:
    """The text with nothing left that Markdown or HTML would read as markup, on one line."""
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", line)
