"""The table rows as CSV: fractions, one column per seed."""

from __future__ import annotations

from typing import Any

from harness.report.build import RunReport, Section
from harness.report.published import PublishedCell
from harness.results.aggregate import TableRow
from harness.results.statistics import Interval
from harness.safe_io import csv_text
from harness.suite.spec import Unsupported


def render_csv(report: RunReport) -> str:
    """Render the table rows of all sections, told apart by ``checkpoint``; a missing value is an empty field."""
    seeds = [f"seed_{seed}" for seed in report.results.seeds]
    rows = [fields for section in report.sections for fields in _section(section, seeds)]
    header = list(rows[0]) if rows else ["dataset", "method"]
    return csv_text([header, *(fields.values() for fields in rows)])


def _section(section: Section, seeds: list[str]) -> list[dict[str, Any]]:
    """Return the rows of a section, with the bounds of their intervals and the published numbers if it has them."""
    rows = [_fields(row, seeds) for row in section.table.rows]
    if section.published is not None:
        cells = {(cell.dataset, cell.split, cell.method): cell for cell in section.published.rows}
        for fields, row in zip(rows, section.table.rows, strict=True):
            fields.update(_published(cells.get((row.dataset, row.split, row.method))))
    if section.statistics is not None:
        for fields, computed in zip(rows, section.statistics.rows, strict=True):
            fields.update(_bounds("mean", computed.mean) | _bounds("difference", computed.difference))
    return rows + [_unsupported(one, list(rows[0])) for one in section.table.results.unsupported if rows]


def _unsupported(one: Unsupported, names: list[str]) -> dict[str, Any]:
    told = {"status": "unsupported", "reason": f"{one.component} {one.reason}"}
    return {**dict.fromkeys(names), "dataset": one.dataset, "method": one.method, **told}


def _published(cell: PublishedCell | None) -> dict[str, Any]:
    """Return the paper's number for a row and the verdict on it; empty fields if it has none."""
    difference = None if cell is None else cell.difference.times(0.01)
    fields = {
        "mean": cell and cell.mean / 100,
        "spread": cell and cell.spread and cell.spread / 100,
        "n": cell and cell.runs,
        "difference": difference and difference.estimate,
        "low": difference and difference.low,
        "high": difference and difference.high,
        "verdict": cell and cell.verdict,
        "reason": cell and cell.note,
    }
    return {f"published_{name}": value for name, value in fields.items()}


def _bounds(name: str, interval: Interval | None) -> dict[str, Any]:
    scaled = None if interval is None else interval.times(0.01)
    return {f"{name}_low": scaled and scaled.low, f"{name}_high": scaled and scaled.high}


def _fields(row: TableRow, seeds: list[str]) -> dict[str, Any]:
    flat = row.to_json()
    values, validation, difference = flat.pop("values"), flat.pop("validation"), flat.pop("difference") or {}
    flat |= dict(zip(seeds, values, strict=True))
    flat |= {f"validation_{name}": validation[name] for name in ("split", "n", "mean", "spread")}
    flat |= {f"difference_{name}": difference.get(name) for name in ("n", "mean", "spread")}
    return flat
