"""The picture of a table: for each column a dot and an interval per method on one axis.

Geometry only, of the intervals that the statistics have; lengths are in the units of the drawing, about a pixel each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import NamedTuple

from harness.report.statistics import RowStatistics, Statistics
from harness.report.table import interval_text, one_line, points, shortened, value_text
from harness.results.aggregate import Column, ResultTable, TableRow
from harness.results.statistics import LEVEL, Interval

NAMES, PLOT, VALUES = 166.0, 200.0, 94.0
"""Widths of the names, of the plot, and of the values."""
TOP, ROW = 6.0, 22.0
STEPS = (1, 2, 5, 10, 20, 50)


class Mark(NamedTuple):
    """A method's row.

    Attributes:
        told: what the row says in words, the interval in numbers.
        dot, low, high: places on the axis, None without a value or an interval.
        kind: ``reference``, ``apart`` where the interval of the difference to it excludes zero, or empty.
    """

    row: TableRow
    y: float
    name: str
    text: str
    told: str
    dot: float | None
    low: float | None
    high: float | None
    kind: str


@dataclass(frozen=True)
class Forest:
    """One column's panel; ``reference`` is the place of the reference row's mean, ``ticks`` are numbers and places."""

    label: str
    marks: tuple[Mark, ...]
    ticks: tuple[tuple[int, float], ...]
    reference: float | None
    width: float = NAMES + PLOT + VALUES

    @property
    def floor(self) -> float:
        """Where the axis is."""
        return TOP + ROW * len(self.marks)


def legend(reference: str | None) -> str:
    """Say how the picture is read."""
    text = f"Picture: a dot is the mean over seeds, the line its {LEVEL:.0%} t-interval."
    if reference is None:
        return text
    told = "a filled dot: the difference to it, paired by seed, has an interval that excludes zero."
    return f"{text} Dashed: {one_line(reference)}; {told}"


def forests(table: ResultTable, computed: Statistics) -> Iterator[Forest]:
    """Draw each column that has a value."""
    found = {row.place: row for row in computed.rows}
    for column in table.columns:
        rows = [(row, found[row.method, row.dataset, row.split]) for row in table.column(column)]
        if any(row.mean.n for _, row in rows):
            yield _forest(column, rows, computed.reference, len(table.results.seeds))


def _forest(column: Column, rows: list[tuple[TableRow, RowStatistics]], reference: str | None, seeds: int) -> Forest:
    least = -100.0 if column.metric == "mcc" else 0.0
    bounds = (bound for _, row in rows for bound in (row.mean.estimate, row.mean.low, row.mean.high))
    ticks = _ticks([min(max(bound, least), 100.0) for bound in bounds if bound is not None])

    def x(value: float | None) -> float | None:
        """Return where a value is, or the end of the axis that is nearest to it."""
        share = None if value is None else (value - ticks[0]) / (ticks[-1] - ticks[0])
        return None if share is None else NAMES + PLOT * min(max(share, 0.0), 1.0)

    marks = []
    for place, (row, numbers) in enumerate(rows):
        mean, difference = numbers.mean, numbers.difference
        kind = "apart" if difference is not None and difference.excludes_zero else ""
        marks.append(
            Mark(
                row,
                y=TOP + ROW * (place + 0.5),
                name=shortened(row.method, 21),
                text=_text(row, mean, seeds),
                told=_told(row, numbers, reference),
                dot=x(mean.estimate),
                low=x(mean.low),
                high=x(mean.high),
                kind="reference" if row.method == reference else kind,
            )
        )
    base = next((mark.dot for mark in marks if mark.kind == "reference"), None)
    return Forest(column.label, tuple(marks), tuple((tick, x(tick) or NAMES) for tick in ticks), base)


def _text(row: TableRow, mean: Interval, seeds: int) -> str:
    if mean.estimate is None:
        return shortened(value_text(row), 40)
    return points(mean.estimate) + (f" (n={mean.n}/{seeds})" if mean.n < seeds else "")


def _told(row: TableRow, numbers: RowStatistics, reference: str | None) -> str:
    parts = [value_text(row), *([interval_text(numbers.mean)] if numbers.mean.n > 1 else [])]
    if numbers.difference is not None and numbers.difference.n > 1:
        parts.append(f"difference to {reference} {interval_text(numbers.difference, signed=True)}")
    return "; ".join(parts)


def _ticks(values: Sequence[float]) -> range:
    """Return at most seven round numbers, of which the first and the last enclose the values."""
    low, high = min(values), max(values)
    step = next(step for step in STEPS if (high - low) / step <= 5)
    first = floor(low / step) * step
    return range(first, max(ceil(high / step) * step, first + step) + 1, step)
