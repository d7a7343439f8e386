"""The table rows as CSV: fractions, one column per seed."""

from __future__ import annotations

import csv
import io
from typing import Any

from harness.report.build import Report, Section
from harness.report.published import Beside
from harness.report.table import TableRow
from harness.results.intervals import Interval
from harness.results.rows import dumps
from harness.safe_io import for_spreadsheet

_PUBLISHED = ("mean", "spread", "n", "difference", "low", "high", "verdict", "reason")


def csv_rows(report: Report) -> str:
    """The table rows of all sections, told apart by ``checkpoint``; a value that is not there is an empty field."""
    stream = io.StringIO()
    seeds = [f"seed_{seed}" for seed in report.results.seeds]
    rows = [fields for section in report.sections for fields in _section(section, seeds)]
    writer = csv.DictWriter(stream, list(rows[0]) if rows else ["dataset", "method"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _section(section: Section, seeds: list[str]) -> list[dict[str, Any]]:
    """The rows of a section; with statistics, each has the bounds of its intervals, and with published numbers these,
    as fractions like all values."""
    rows = [_fields(row, seeds) for row in section.table.rows]
    if section.published is not None:
        beside = {(one.row.dataset, one.row.split, one.row.method): one for one in section.published.beside}
        for fields, row in zip(rows, section.table.rows, strict=True):
            fields.update(_published(beside.get((row.dataset, row.split, row.method))))
    if section.statistics is not None:
        for fields, found in zip(rows, section.statistics.rows, strict=True):
            fields.update(_bounds("mean", found.mean) | _bounds("difference", found.difference))
    return rows


def _published(one: Beside | None) -> dict[str, Any]:
    """The paper's number for a row and what is made of it; empty fields where it has none."""
    if one is None:
        return {f"published_{name}": None for name in _PUBLISHED}
    spread = None if one.theirs.spread is None else one.theirs.spread / 100
    scaled = one.difference.times(0.01)
    reasons = "; ".join((*one.differs, *filter(None, [one.reason]), *one.remarks))
    values = (one.theirs.mean / 100, spread, one.table.runs, scaled.estimate, scaled.low, scaled.high, one.verdict)
    return {f"published_{name}": value for name, value in zip(_PUBLISHED, (*values, reasons), strict=True)}


def _bounds(name: str, interval: Interval | None) -> dict[str, Any]:
    scaled = None if interval is None else interval.times(0.01)
    return {f"{name}_low": scaled and scaled.low, f"{name}_high": scaled and scaled.high}


def _fields(row: TableRow, seeds: list[str]) -> dict[str, Any]:
    flat = row.to_json()
    values, validation, difference = flat.pop("values"), flat.pop("validation"), flat.pop("difference") or {}
    flat |= dict(zip(seeds, values, strict=True))
    flat |= {f"validation_{name}": validation[name] for name in ("split", "n", "mean", "spread")}
    flat |= {f"difference_{name}": difference.get(name) for name in ("n", "mean", "spread")}
    return {name: _plain(value) for name, value in flat.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list)):
        return dumps(value, indent=None).strip()
    return for_spreadsheet(value) if isinstance(value, str) else value
