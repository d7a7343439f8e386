"""The analyses of a run in a report: a table each, its notes, and where the figures are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.analysis import Cell
from harness.report.block import EMPTY, Block
from harness.report.layout import Grid, Text
from harness.report.text import one_line
from harness.results.findings import Finding


def cell_text(cell: Cell) -> str:
    """A number with three decimals, a dash for None, text on one line."""
    if cell is None:
        return "–"
    return f"{cell:.3f}" if isinstance(cell, float) else one_line(str(cell))


def heading(finding: Finding) -> str:
    """Label and component with its values."""
    values = ", ".join(f"{name}={value}" for name, value in finding.params.items())
    component = f"{finding.analysis}({values})" if values else finding.analysis
    return finding.label if finding.label == component else f"{finding.label} [{component}]"


def notes(finding: Finding) -> list[str]:
    """The notes, and what was read that no method may see."""
    opened = [f"Opens {', '.join(finding.opens)}, which no method sees."] if finding.opens else []
    return [*finding.notes, *opened]


def finding_block(finding: Finding, folder: Path) -> Block:
    """One analysis as a table beside the main one."""
    title = f"Analysis: {heading(finding)}"
    wrong = [f"{finding.status}: {one_line(finding.reason)}"] if finding.status != "ok" else []
    if not finding.columns:
        return Block(title, EMPTY, tuple(wrong))
    rows = tuple(tuple(Text(cell_text(cell)) for cell in row) for row in finding.rows)
    numbers = (place for place, cell in enumerate(finding.rows[0]) if not isinstance(cell, str)) if rows else iter(())
    words = next(numbers, len(finding.columns))
    figure = str(folder / finding.figures[0]) if finding.figures else ""
    return Block(title, Grid(finding.columns, rows, (), words), (*wrong, *notes(finding)), figure)


def finding_json(finding: Finding, folder: Path) -> dict[str, Any]:
    """One analysis as plain data; figures with their folder."""
    return {**vars(finding), "notes": notes(finding), "figures": [str(folder / name) for name in finding.figures]}
