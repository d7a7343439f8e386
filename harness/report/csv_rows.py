"""The table rows as CSV: fractions, one column per seed."""

from __future__ import annotations

import csv
import io
from typing import Any

from harness.report.build import Report
from harness.report.table import TableRow
from harness.results import dumps


def csv_rows(report: Report) -> str:
    """The table rows of all sections, told apart by ``checkpoint``; a value that is not there is an empty field."""
    stream = io.StringIO()
    seeds = [f"seed_{seed}" for seed in report.results.seeds]
    rows = [_fields(row, seeds) for section in report.sections for row in section.table.rows]
    writer = csv.DictWriter(stream, list(rows[0]) if rows else ["dataset", "method"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


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
    return value
