"""The finding of an analysis in a run folder: a table, notes and the names of its figures. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.analysis import Cell
from harness.safe_io import FILE_NAME, csv_text, json_text, parse_json_as, write_text

FINDING = "finding.json"
FOLDER = "analyses"


@dataclass(frozen=True)
class Finding:
    """One analysis of a run.

    Attributes:
        label: its name in the suite; ``analysis`` and ``params`` the component with its values.
        opens: what it read that no method may see: ``test labels``, oracle fields.
        columns, rows, notes: see :class:`harness.analysis.Findings`.
        figures: file names beside ``finding.json``: the same figure in several formats.
        status: ``ok`` or ``failed``, with ``reason`` and ``traceback``. One that failed for some cells alone has a
            table of the others.
    """

    label: str
    analysis: str
    params: Mapping[str, Any] = field(default_factory=dict)
    opens: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell | bool, ...], ...] = ()
    notes: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    status: str = "ok"
    reason: str = ""
    traceback: str = ""


def plain_cell(cell: Any) -> Cell:
    """Return a cell of a table as a plain value of Python's.

    Raises:
        TypeError: it is something else than a text, a number or None.
    """
    item = getattr(cell, "item", None)
    plain = item() if callable(item) and not getattr(cell, "shape", ()) else cell
    if plain is not None and not isinstance(plain, (str, int, float)):
        raise TypeError(f"a cell of a table is a text, a number or None, not {type(plain).__name__}")
    return plain


def save_finding(finding: Finding, folder: Path) -> None:
    """Write ``finding.json`` and, where there is a table, ``table.csv``."""
    for stale in folder.glob("*"):
        if stale.is_file() and stale.name not in finding.figures:
            stale.unlink()
    write_text(folder / FINDING, json_text(finding))
    if finding.columns:
        write_text(folder / "table.csv", csv_text([finding.columns, *finding.rows]))


def load_findings(run: Path) -> list[tuple[Finding, Path]]:
    """Read the analyses in a run folder with the folder of each, in the suite's order; unreadable ones are left out."""
    findings = []
    for path in sorted((run / FOLDER).glob(f"*/{FINDING}")):
        with suppress(OSError, ValueError):
            finding = parse_json_as(Finding, path.read_text(encoding="utf-8"))
            fits = all(len(row) == len(finding.columns) for row in finding.rows)
            if fits and all(FILE_NAME.fullmatch(name) for name in finding.figures):
                findings.append((finding, path.parent))
    return findings
