"""Unfolded plain text: what a pipe, a file or a narrow terminal gets. Nothing is cut and nothing wraps."""

from __future__ import annotations

from unicodedata import combining, east_asian_width

from harness.report.block import Block
from harness.report.build import Report, Section
from harness.report.layout import Grid, Text
from harness.safe_io import visible

RANK_SIGNS = {"best": " *", "second": " +"}
LEGEND = "* best, + second best of a column."
_ASCII = str.maketrans(
    {
        "±": "+/-",
        "†": "(v)",
        "‡": "(o)",
        "–": "-",
        "−": "-",
        "…": "...",
        "Δ": "diff. to",
        "γ": "gamma",
        "λ": "lambda",
        "τ": "tau",
    }
)


def plain(report: Report) -> str:
    """The whole report."""
    return "\n\n".join([report.title, *(section_text(section) for section in report.sections)]) + "\n"


def section_text(section: Section) -> str:
    """One table, footnotes, selected configurations, caption, a sentence a line, and the tables beside it."""
    parts = [grid_text(section.grid), *notes(section), *(block_text(block) for block in section.blocks)]
    return "\n\n".join(parts)


def block_text(block: Block) -> str:
    """A table beside the main one: title, table, footnotes, sentences."""
    notes = [f"[{number}] {text}" for number, text in enumerate(block.grid.footnotes, start=1)]
    table = [grid_text(block.grid)] if block.grid.rows else []
    return "\n\n".join([block.title, *table, *(["\n".join(notes)] if notes else []), "\n".join(block.told)])


def notes(section: Section, legend: str = LEGEND) -> list[str]:
    """The paragraphs below a table; empty ones are left out."""
    footnotes = [f"[{number}] {text}" for number, text in enumerate(section.grid.footnotes, start=1)]
    selected = ["Selected configurations:", *(f"  {line}" for line in section.selected)] if section.selected else []
    caption = [*section.caption, *([legend] if section.grid.ranked else [])]
    return ["\n".join(lines) for lines in (footnotes, selected, caption) if lines]


def grid_text(grid: Grid) -> str:
    """The table with aligned columns, two spaces between them."""
    lines = [list(grid.header), *([label(text, RANK_SIGNS) for text in row] for row in grid.rows)]
    widths = [max(width(line[i]) for line in lines) for i in range(len(grid.header))]
    rule = ["-" * size for size in widths]
    return "\n".join(
        "  ".join(text + " " * (size - width(text)) for text, size in zip(line, widths, strict=True)).rstrip()
        for line in [lines[0], rule, *lines[1:]]
    )


def label(text: Text, signs: dict[str, str] | None = None) -> str:
    """An entry with its flags, footnote numbers and, where given, a sign for its rank; on one line."""
    flags = f" {text.flags}" if text.flags else ""
    numbers = "".join(f" [{number}]" for number in text.notes)
    return " ".join(f"{text.text}{flags}{numbers}".split()) + (signs or {}).get(text.rank, "")


def width(text: str) -> int:
    """The number of terminal cells that a text takes."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def encodable(text: str, encoding: str | None) -> str:
    """The text in characters that an output's encoding has: signs are spelt out, anything else becomes ``?``.

    What would steer a terminal is written out (:func:`harness.safe_io.visible`).
    """
    name = encoding or "ascii"
    text = visible(text)
    try:
        text.encode(name)
    except (UnicodeEncodeError, LookupError):
        return text.translate(_ASCII).encode("ascii" if encoding is None else name, "replace").decode(name)
    return text
