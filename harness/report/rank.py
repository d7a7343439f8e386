"""Best and second best of a column."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite


def rank(means: Sequence[float | None], *, higher_is_better: bool = True) -> list[str]:
    """``best``, ``second`` or an empty text for each mean (a fraction).

    Means are compared as they are printed, in percent with two decimals, so that what looks equal is marked equal:
    all ties are marked, and second is the next distinct value. None and non-finite values are never marked.
    """
    shown = [round(100 * mean, 2) if mean is not None and isfinite(mean) else None for mean in means]
    distinct = sorted({value for value in shown if value is not None}, reverse=higher_is_better)
    marks = dict(zip(distinct, ("best", "second"), strict=False))
    return ["" if value is None else marks.get(value, "") for value in shown]
