"""The statistics of a table: intervals over seeds, tests and ranks across datasets.

Never over two metrics at once, nor over in-distribution and shifted splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

from harness.data import in_distribution
from harness.results.aggregate import Column, ResultTable, TableRow, column_families
from harness.results.rows import METRICS
from harness.results.statistics import (
    ALPHA,
    LEVEL,
    POWER,
    Interval,
    Ranking,
    TestResult,
    compared,
    detectable_effect,
    mean_interval,
    permutation,
    ranking,
    wilcoxon,
)
from harness.results.summary import mean, paired_difference, settled


@dataclass(frozen=True)
class RowStatistics:
    """One table row: its mean over seeds and its difference to the reference, paired by seed, in percentage points.

    ``difference`` is None for the reference itself and without one.
    """

    dataset: str
    split: str
    method: str
    mean: Interval
    difference: Interval | None

    @property
    def place(self) -> tuple[str, str, str]:
        """Where the row stands in the table."""
        return self.method, self.dataset, self.split


@dataclass(frozen=True)
class Detectable:
    """The smallest difference to the reference that the seeds of one column can show.

    Attributes:
        seeds: pairs behind a difference; ``methods``: differences behind ``deviation``.
        deviation: pooled standard deviation of the paired differences, in points; None without differences.
        effect: smallest detectable true difference in standard deviations (:func:`detectable_effect`), None for one
            seed; ``points``: the same in percentage points.
    """

    dataset: str
    split: str
    seeds: int
    methods: int
    deviation: float | None
    effect: float | None
    points: float | None


@dataclass(frozen=True)
class MethodTests:
    """One method against the reference across datasets; positive effects and wins are the method's."""

    method: str
    wilcoxon: TestResult
    permutation: TestResult
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class Family:
    """Statistics across the datasets that share a metric and a kind of split.

    Attributes:
        label: metric and kind of split.
        datasets: in the order of the suite; ``related``: component -> number of the datasets it makes, if several.
        scores: method -> seed mean of each dataset as printed (percent, two decimals), None if it does not count.
        left_out: method -> why none of its cells counts; ``gaps``: the same by ``METHOD on DATASET`` for single cells.
        comparisons: against the reference; empty without one.
    """

    label: str
    datasets: tuple[str, ...]
    related: Mapping[str, int]
    scores: Mapping[str, Sequence[float | None]]
    left_out: Mapping[str, str]
    gaps: Mapping[str, str]
    comparisons: Sequence[MethodTests]
    ranking: Ranking


@dataclass(frozen=True)
class Statistics:
    """All statistics of one table, in percentage points.

    ``near_best`` are the places of rows whose difference to the best of their column, paired by seed, has an interval
    that includes zero.
    """

    reference: str | None
    rows: tuple[RowStatistics, ...]
    near_best: tuple[tuple[str, str, str], ...]
    detectable: tuple[Detectable, ...]
    families: tuple[Family, ...]


def statistics(table: ResultTable) -> Statistics:
    """Compute the statistics of a table, finished or not."""
    reference = table.results.reference if table.results.reference in table.results.methods else None
    rows = tuple(_row(row) for row in table.rows)
    detectable = tuple(_detectable(table, column) for column in table.columns) if reference else ()
    families = tuple(_family(table, columns, reference) for columns in column_families(table))
    return Statistics(reference, rows, tuple(_near_best(table)), detectable, families)


def statistics_json(computed: Statistics) -> dict[str, Any]:
    """Return all statistics as plain data."""
    data = {"unit": "percentage points", "level": LEVEL, "alpha": ALPHA, "power": POWER, **asdict(computed)}
    for family, fields in zip(computed.families, data["families"], strict=True):
        fields["ranking"]["datasets"] = [family.datasets[position] for position in family.ranking.datasets]
    return data


def _row(row: TableRow) -> RowStatistics:
    difference = None if row.difference is None else mean_interval(row.difference.values).times(100)
    return RowStatistics(row.dataset, row.split, row.method, mean_interval(row.test.values).times(100), difference)


def _near_best(table: ResultTable) -> Iterator[tuple[str, str, str]]:
    for column in table.columns:
        rows = [row for row in table.column(column) if row.test.complete and row.competes]
        best = next((row for row in rows if row.rank == "best"), None)
        for row in rows:
            if best is not None and row.rank != "best":
                difference = mean_interval(paired_difference(row.test.values, best.test.values).values)
                if difference.low is not None and not difference.excludes_zero:
                    yield row.method, row.dataset, row.split


def _detectable(table: ResultTable, column: Column) -> Detectable:
    differences = [row.difference for row in table.column(column) if row.difference is not None]
    usable = [d for d in differences if d.spread is not None]
    seeds = max((d.n for d in differences), default=0)
    degrees = sum(d.n - 1 for d in usable)
    deviation = 100 * sqrt(sum((d.n - 1) * (d.spread or 0.0) ** 2 for d in usable) / degrees) if usable else None
    effect = detectable_effect(seeds)
    smallest = None if deviation is None or effect is None else deviation * effect
    return Detectable(column.dataset, column.split, seeds, len(usable), deviation, effect, smallest)


def _family(table: ResultTable, columns: Sequence[Column], reference: str | None) -> Family:
    datasets = tuple(dict.fromkeys(column.dataset for column in columns))
    scores: dict[str, list[float | None]] = {}
    gaps: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for method in table.results.methods:
        cells = [_score(table, method, [c for c in columns if c.dataset == dataset]) for dataset in datasets]
        if any(value is not None for value, _ in cells):
            scores[method] = [value for value, _ in cells]
            gaps |= {f"{method} on {d}": why for d, (value, why) in zip(datasets, cells, strict=True) if value is None}
        else:
            left_out[method] = "; ".join(dict.fromkeys(why for _, why in cells))
    kind = "in-distribution" if in_distribution(columns[0].split) else "test"
    components = [table.results.dataset(dataset).component for dataset in datasets]
    return Family(
        label=f"{METRICS.get(columns[0].metric, columns[0].metric)}, {kind} splits",
        datasets=datasets,
        related={c: components.count(c) for c in dict.fromkeys(components) if c and components.count(c) > 1},
        scores=scores,
        left_out=left_out,
        gaps=gaps,
        comparisons=_tests(scores, reference),
        ranking=ranking(scores),
    )


def _score(table: ResultTable, method: str, columns: Sequence[Column]) -> tuple[float | None, str]:
    """Return a method's seed mean on a dataset, over its splits of one kind; or None and why it does not count."""
    means = []
    for column in columns:
        row = table.cell(method, column)
        why = "not in the suite" if row is None else _why_not(row)
        if row is None or why or row.test.mean is None:
            return None, why
        means.append(round(100 * row.test.mean, 2))
    return mean(means), ""


def _why_not(row: TableRow) -> str:
    """Say why a cell does not count, as it is not ranked in the table either; empty if it does."""
    if row.uses_oracle:
        return "oracle information"
    if row.provisional:
        return "provisional"
    if row.test.complete:
        return ""
    return f"n={row.test.n}/{len(row.test.values)}" if row.test.n else row.status


def _tests(scores: Mapping[str, Sequence[float | None]], reference: str | None) -> tuple[MethodTests, ...]:
    """Test each method against the reference, with Holm's correction over the methods, for each of the two tests."""
    if reference is None or reference not in scores:
        return ()
    base = scores[reference]
    differences = {
        method: [settled(a - b) for a, b in zip(values, base, strict=True) if a is not None and b is not None]
        for method, values in scores.items()
        if method != reference
    }
    by_rank, by_mean = compared(differences, wilcoxon), compared(differences, permutation)
    comparisons = []
    for method, values in differences.items():
        wins, losses = sum(value > 0 for value in values), sum(value < 0 for value in values)
        ties = len(values) - wins - losses
        comparisons.append(MethodTests(method, by_rank[method], by_mean[method], wins, ties, losses))
    return tuple(comparisons)
