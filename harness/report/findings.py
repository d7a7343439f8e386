"""The analyses of a run in a report: a table each, its notes, and the paths of its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.analysis import Cell
from harness.report.table import Text, TextTable
from harness.report.text import one_line
from harness.results.findings import Finding


def finding_table(finding: Finding, folder: Path) -> TextTable:
    """Lay one analysis out."""
    title = f"Analysis: {heading(finding)}"
    wrong = (f"{finding.status}: {one_line(finding.reason)}",) if finding.status != "ok" else ()
    if not finding.columns:
        return TextTable(title, caption=wrong)
    rows = tuple(tuple(Text(_cell_text(cell)) for cell in row) for row in finding.rows)
    numbers = (place for place, cell in enumerate(finding.rows[0]) if not isinstance(cell, str)) if rows else iter(())
    words = next(numbers, len(finding.columns))
    figure = str(folder / finding.figures[0]) if finding.figures else ""
    return TextTable(title, finding.columns, rows, words, caption=(*wrong, *_notes(finding)), figure=figure)


def finding_json(finding: Finding, folder: Path) -> dict[str, Any]:
    """Return one analysis as plain data, its figures with their folder."""
    return {**vars(finding), "notes": _notes(finding), "figures": [str(folder / name) for name in finding.figures]}


def heading(finding: Finding) -> str:
    """Return the label, and the component with its values unless that is the label."""
    values = ", ".join(f"{name}={value}" for name, value in finding.params.items())
    component = f"{finding.analysis}({values})" if values else finding.analysis
    return finding.label if finding.label == component else f"{finding.label} [{component}]"


def _cell_text(cell: Cell) -> str:
    if cell is None:
        return "–"
    return f"{cell:.3f}" if isinstance(cell, float) else one_line(str(cell))


def _notes(finding: Finding) -> list[str]:
    """Return the notes, and what the analysis read that no method may see."""
    opened = [f"Opens {', '.join(finding.opens)}, which no method sees."] if finding.opens else []
    return [*finding.notes, *opened]
