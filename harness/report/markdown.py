"""The report as GitHub-flavoured Markdown, with footnotes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.report.block import Block
from harness.report.build import Report, Section
from harness.report.layout import Grid, Text

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
    sentences = [*section.caption, *([LEGEND] if grid.ranked else [])]
    parts = [_table(grid, prefix), " ".join(escape(sentence) for sentence in sentences)]
    if section.selected:
        parts.append("\n".join(["Selected configurations:", "", *(f"- {escape(line)}" for line in section.selected)]))
    parts += _footnotes(grid, prefix)
    parts += [block_text(block, f"{prefix}{chr(97 + number)}") for number, block in enumerate(section.blocks)]
    return "\n\n".join(parts)


def block_text(block: Block, prefix: str = "") -> str:
    """A table beside the main one under a heading of its own; ``prefix`` keeps its footnotes apart from others."""
    table = [_table(block.grid, prefix)] if block.grid.rows else []
    sentences = " ".join(escape(sentence) for sentence in block.told)
    return "\n\n".join([f"### {escape(block.title)}", *table, sentences, *_footnotes(block.grid, prefix)])


def _table(grid: Grid, prefix: str) -> str:
    lines = [
        _line(escape(heading) for heading in grid.header),
        _line("---" if i < grid.words else "---:" for i in range(len(grid.header))),
    ]
    return "\n".join([*lines, *(_line(_entry(text, prefix) for text in row) for row in grid.rows)])


def _footnotes(grid: Grid, prefix: str) -> list[str]:
    return [f"[^{prefix}{number}]: {escape(note)}" for number, note in enumerate(grid.footnotes, start=1)]


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
