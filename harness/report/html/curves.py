"""Learning curves: what the trainings' histories hold, thinned to a bounded size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

BUDGET = 450_000
"""Most numbers of all curves together, as long as no curve falls below the least: under two megabytes in the page."""
SERIES = 4
"""Curves per training that the budget reckons with."""
LEAST, MOST = 16, 200
"""Fewest and most points of one curve."""


def points(trainings: int) -> int:
    """How many points a curve may have, given how many trainings are shown."""
    return max(LEAST, min(MOST, BUDGET // (SERIES * max(trainings, 1))))


def curves(history: Sequence[Mapping[str, Any]], limit: int, keep: Sequence[int] = ()) -> dict[str, Any]:
    """A history as ``epochs`` and ``series``: name -> values, None where undefined, rounded to what a curve can show.

    The scores come first. ``loss`` is left out where it is the only term's sum.

    Args:
        history: one row per epoch: ``epoch``, loss terms, ``score/SPLIT``.
        limit: most points, evenly spaced, the first and the last among them.
        keep: epochs that must be among them, beyond the limit.
    """
    rows = thinned(history, limit, keep)
    names = sorted({name for row in history for name in row if name != "epoch"}, key=_order)
    digits = 4 if limit == MOST else 3
    series = {name: [_short(row.get(name), digits) for row in rows] for name in names}
    terms = [name for name in names if not name.startswith("score/") and name != "loss"]
    if len(terms) == 1 and series.get("loss") == series[terms[0]]:
        del series["loss"]
    return {"epochs": [row["epoch"] for row in rows], "series": series}


def thinned(history: Sequence[Mapping[str, Any]], limit: int, keep: Sequence[int] = ()) -> list[Mapping[str, Any]]:
    """At most ``limit`` rows, evenly spaced, and those of the epochs to keep."""
    count = len(history)
    if count <= limit:
        return list(history)
    chosen = {round(step * (count - 1) / (limit - 1)) for step in range(limit)}
    chosen |= {place for place, row in enumerate(history) if row["epoch"] in keep}
    return [history[place] for place in sorted(chosen)]


def _order(name: str) -> tuple[int, str]:
    return (0 if name.startswith("score/") else 2 if name == "loss" else 1), name


def _short(value: Any, digits: int) -> float | None:
    return float(f"{value:.{digits}g}") if isinstance(value, (int, float)) else None
