"""What stands beside the tables: statistics, published numbers, analyses with their figures. No torch."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.report.block import EMPTY, Block
from harness.report.build import Section
from harness.report.findings import cell_text, heading, notes
from harness.report.html.diagram import Diagram, diagram
from harness.report.layout import Grid, Text
from harness.report.text import one_line
from harness.results.findings import Finding, load_findings

WIDEST = 60
"""A table with more columns is left out of the page."""
LARGEST_FIGURE = 1_500_000
"""Bytes of a figure that the page takes in; PNG instead of SVG where that is smaller than this."""
MOST_ROWS = 500
_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


@dataclass(frozen=True)
class FindingView:
    """An analysis: its table and its figure as a data URI, empty where there is none."""

    title: str
    grid: Grid
    sentences: tuple[str, ...]
    figure: str
    reason: str
    traceback: str


def shown_blocks(section: Section) -> list[Block]:
    """The blocks of a section, without the tables that are too wide."""
    return [block if len(block.grid.header) <= WIDEST else _too_wide(block) for block in section.blocks]


def _too_wide(block: Block) -> Block:
    told = f"A table of {len(block.grid.header)} columns, too wide for this page; the other formats have it."
    return Block(block.title, EMPTY, (told, *block.sentences))


def diagrams(section: Section) -> list[tuple[str, Diagram]]:
    """A title and a critical-difference diagram for each family of datasets that allows one."""
    families = section.statistics.families if section.statistics else ()
    drawn = [(family.label, diagram(family.ranking)) for family in families]
    return [(f"Critical-difference diagram: {label}", found) for label, found in drawn if found is not None]


def finding_views(run: Path) -> list[FindingView]:
    """The analyses in a run folder."""
    return [_finding(finding, folder) for finding, folder in load_findings(run)]


def _finding(finding: Finding, folder: Path) -> FindingView:
    rows = [tuple(Text(cell_text(cell)) for cell in row) for row in finding.rows]
    sentences = notes(finding)
    if len(rows) > MOST_ROWS:
        sentences.append(f"The first {MOST_ROWS} of {len(rows)} rows; table.csv in the run's folder has all.")
    figure = _figure([folder / name for name in finding.figures])
    if finding.figures and not figure:
        sentences.append(f"The figure is too large for this page: {folder.name}/{finding.figures[0]}.")
    grid = Grid(tuple(map(one_line, finding.columns)), tuple(rows[:MOST_ROWS]), (), words=_words(finding))
    reason = one_line(finding.reason) if finding.status != "ok" else ""
    return FindingView(heading(finding), grid, tuple(sentences), figure, reason, finding.traceback)


def _words(finding: Finding) -> int:
    """How many of the first columns are words."""
    count = 0
    for position in range(len(finding.columns)):
        if not all(isinstance(row[position], str) for row in finding.rows):
            break
        count += 1
    return max(count, 1)


def _figure(paths: Sequence[Path]) -> str:
    """The first file that a page can show and that is not too large, as a data URI.

    A figure is shown as an image and not as part of the page, so that nothing in it can run or refer to anything.
    """
    for path in sorted(paths, key=lambda path: list(_TYPES).index(path.suffix) if path.suffix in _TYPES else 9):
        if path.suffix in _TYPES and path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST_FIGURE:
            return f"data:{_TYPES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"
    return ""
