"""The statistics as plain data. Values are in percentage points, as the statistics print them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.report.statistics import Family, RowStatistics, Statistics


def statistics_json(found: Statistics) -> dict[str, Any]:
    """All that the statistics hold."""
    return {
        "unit": "percentage points",
        "level": found.level,
        "alpha": found.alpha,
        "power": found.power,
        "reference": found.reference,
        "rows": [_row(row) for row in found.rows],
        "detectable": [
            {
                "dataset": one.column.dataset,
                "split": one.column.split,
                "seeds": one.seeds,
                "methods": one.methods,
                "deviation": one.deviation,
                "effect": one.effect,
                "points": one.points,
            }
            for one in found.detectable
        ],
        "families": [_family(family) for family in found.families],
    }


def _row(row: RowStatistics) -> dict[str, Any]:
    return {
        "dataset": row.row.dataset,
        "split": row.row.split,
        "method": row.row.method,
        "mean": asdict(row.mean),
        "difference": None if row.difference is None else asdict(row.difference),
    }


def _family(family: Family) -> dict[str, Any]:
    ranking = asdict(family.ranking)
    ranking["datasets"] = [family.datasets[position] for position in family.ranking.datasets]
    return {
        "label": family.label,
        "metric": family.metric,
        "higher_is_better": family.higher_is_better,
        "datasets": list(family.datasets),
        "related": dict(family.related),
        "scores": {method: list(values) for method, values in family.scores.items()},
        "left_out": dict(family.left_out),
        "gaps": [{"method": m, "dataset": d, "reason": why} for m, d, why in family.gaps],
        "comparisons": [asdict(one) for one in family.comparisons],
        "ranking": ranking,
        "records": [{"method": one, "other": other, **asdict(r)} for (one, other), r in family.records.items()],
    }
