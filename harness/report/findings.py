"""The analyses of a run as text: a table each, its notes, and where the figures are."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.analysis import Cell
from harness.report.layout import Grid, Text
from harness.report.plain import encodable, grid_text
from harness.report.text import one_line
from harness.runs.findings import Finding, load_findings


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


def plain_finding(finding: Finding, folder: Path | None = None) -> str:
    """One analysis as plain text."""
    title = f"Analysis: {heading(finding)}"
    if finding.status != "ok":
        return f"{title}\n\n{finding.status}: {one_line(finding.reason)}"
    rows = tuple(tuple(Text(cell_text(cell)) for cell in row) for row in finding.rows)
    parts = [title, grid_text(Grid(finding.columns, rows, ())), "\n".join(notes(finding))]
    if finding.figures and folder is not None:
        parts.append(f"Figure: {folder / finding.figures[0]}")
    return "\n\n".join(part for part in parts if part)


def to_json(finding: Finding, folder: Path | None = None) -> dict[str, Any]:
    """One analysis as plain data; figures with their folder."""
    where = [str(folder / name) if folder else name for name in finding.figures]
    return {**vars(finding), "notes": notes(finding), "figures": where}


def print_findings(findings: Iterable[Finding], run: Path, *, json: bool = False) -> None:
    """Print analyses of a run."""
    folders = {finding.label: folder for finding, folder in load_findings(run)}
    found: Sequence[Finding] = list(findings)
    if json:
        from harness.results import dumps

        print(dumps({"analyses": [to_json(item, folders.get(item.label)) for item in found]}), end="")
        return
    text = "".join(f"\n{plain_finding(item, folders.get(item.label))}\n" for item in found)
    sys.stdout.write(encodable(text, sys.stdout.encoding))
    sys.stdout.flush()
