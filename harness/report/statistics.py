"""What a table allows to say: intervals over seeds, tests and ranks across datasets. Never over two metrics at once,
nor over in-distribution and shifted splits. SciPy is imported by what this calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from harness.data import in_distribution
from harness.report.summary import Summary
from harness.report.table import Column, Table, TableRow
from harness.results.intervals import ALPHA, LEVEL, POWER, Interval, detectable_effect, mean_interval
from harness.results.means import mean, settled
from harness.results.paired import TestResult, corrected, permutation, wilcoxon
from harness.results.ranks import Ranking, Record, ranking, records


@dataclass(frozen=True)
class RowStatistics:
    """One cell: its mean over seeds and its difference to the reference, paired by seed, in percentage points.

    ``difference`` is None for the reference itself and without one.
    """

    row: TableRow
    mean: Interval
    difference: Interval | None


@dataclass(frozen=True)
class Detectable:
    """What the seeds of one column can tell apart from the reference.

    Attributes:
        seeds: pairs behind a difference; ``methods`` differences behind ``deviation``.
        deviation: pooled standard deviation of the paired differences, in points; None where there is none.
        effect: smallest detectable true difference in standard deviations (:func:`detectable_effect`), None for one
            seed; ``points`` the same in percentage points.
    """

    column: Column
    seeds: int
    methods: int
    deviation: float | None
    effect: float | None

    @property
    def points(self) -> float | None:
        """The smallest detectable difference in percentage points."""
        return None if self.deviation is None or self.effect is None else self.deviation * self.effect


@dataclass(frozen=True)
class Comparison:
    """One method against the reference across datasets; positive effects and wins are the method's."""

    method: str
    wilcoxon: TestResult
    permutation: TestResult
    record: Record


@dataclass(frozen=True)
class Family:
    """Statistics across the datasets that share a metric and a kind of split.

    Attributes:
        label: metric and kind of split.
        datasets: in the order of the suite; ``related`` names a component that several of them come from.
        scores: method -> seed mean of each dataset as printed (percent, two decimals), None where it does not count.
        left_out: method -> why none of its cells counts.
        gaps: (method, dataset, why) of single cells that do not count.
        comparisons: against the reference; empty without one.
    """

    label: str
    metric: str
    higher_is_better: bool
    datasets: tuple[str, ...]
    related: Mapping[str, int]
    scores: Mapping[str, Sequence[float | None]]
    left_out: Mapping[str, str]
    gaps: Sequence[tuple[str, str, str]]
    comparisons: Sequence[Comparison]
    ranking: Ranking
    records: Mapping[tuple[str, str], Record]


@dataclass(frozen=True)
class Statistics:
    """All statistics of one table."""

    reference: str | None
    rows: tuple[RowStatistics, ...]
    detectable: tuple[Detectable, ...]
    families: tuple[Family, ...]
    level: float = LEVEL
    alpha: float = ALPHA
    power: float = POWER


def statistics(table: Table) -> Statistics:
    """The statistics of a table, finished or not."""
    reference = table.results.reference if table.results.reference in table.results.methods else None
    rows = tuple(_row(row) for row in table.rows)
    detectable = tuple(_detectable(table, column) for column in table.columns) if reference else ()
    groups: dict[tuple[str, bool, bool], list[Column]] = {}
    for column in table.columns:
        groups.setdefault((column.metric, column.higher_is_better, in_distribution(column.split)), []).append(column)
    families = tuple(_family(table, columns, reference) for columns in groups.values())
    return Statistics(reference, rows, detectable, families)


def _row(row: TableRow) -> RowStatistics:
    difference = None if row.difference is None else mean_interval(row.difference.values).times(100)
    return RowStatistics(row, mean_interval(row.test.values).times(100), difference)


def _detectable(table: Table, column: Column) -> Detectable:
    differences = [row.difference for row in table.column(column) if row.difference is not None]
    usable = [d for d in differences if d.spread is not None]
    seeds = max((d.n for d in differences), default=0)
    degrees = sum(d.n - 1 for d in usable)
    deviation = 100 * sqrt(sum((d.n - 1) * (d.spread or 0.0) ** 2 for d in usable) / degrees) if usable else None
    return Detectable(column, seeds, len(usable), deviation, detectable_effect(seeds))


def _family(table: Table, columns: Sequence[Column], reference: str | None) -> Family:
    datasets = tuple(dict.fromkeys(column.dataset for column in columns))
    scores: dict[str, list[float | None]] = {}
    gaps: list[tuple[str, str, str]] = []
    left_out: dict[str, str] = {}
    for method in table.results.methods:
        found = [_score(table, method, [c for c in columns if c.dataset == dataset]) for dataset in datasets]
        if any(value is not None for value, _ in found):
            scores[method] = [value for value, _ in found]
            gaps += [(method, d, why) for d, (value, why) in zip(datasets, found, strict=True) if value is None]
        else:
            left_out[method] = "; ".join(dict.fromkeys(why for _, why in found))
    higher = columns[0].higher_is_better
    record = records(scores, higher_is_better=higher)
    kind = "in distribution" if in_distribution(columns[0].split) else "test"
    return Family(
        label=f"{columns[0].metric}, {kind}",
        metric=columns[0].metric,
        higher_is_better=higher,
        datasets=datasets,
        related=_related(table, datasets),
        scores=scores,
        left_out=left_out,
        gaps=gaps,
        comparisons=_comparisons(scores, reference, record),
        ranking=ranking(scores, higher_is_better=higher),
        records=record,
    )


def _score(table: Table, method: str, columns: Sequence[Column]) -> tuple[float | None, str]:
    """A method's seed mean on a dataset, the mean over its splits of one kind; or None and why it does not count."""
    means = []
    for column in columns:
        row = table.cell(method, column)
        why = "not in the suite" if row is None else _why_not(row)
        if row is None or why or row.test.mean is None:
            return None, why
        means.append(round(100 * row.test.mean, 2))
    return mean(means), ""


def _why_not(row: TableRow) -> str:
    """Why a cell does not count, as it is not ranked in the table either; empty where it does."""
    if row.oracle or row.oracle_selection:
        return "oracle information"
    if row.provisional:
        return "provisional"
    return "" if row.test.complete else _incomplete(row.test, row.status)


def _incomplete(summary: Summary, status: str) -> str:
    return f"n={summary.n}/{len(summary.values)}" if summary.n else status


def _related(table: Table, datasets: Sequence[str]) -> dict[str, int]:
    """Component -> how many of the datasets it makes, where these are several."""
    made = [table.results.dataset(dataset).component for dataset in datasets]
    return {name: made.count(name) for name in dict.fromkeys(made) if name and made.count(name) > 1}


def _comparisons(
    scores: Mapping[str, Sequence[float | None]], reference: str | None, record: Mapping[tuple[str, str], Record]
) -> tuple[Comparison, ...]:
    """Each method against the reference, with Holm's correction over the methods, for each of the two tests."""
    if reference is None or reference not in scores:
        return ()
    base = scores[reference]
    differences = {
        method: [settled(a - b) for a, b in zip(values, base, strict=True) if a is not None and b is not None]
        for method, values in scores.items()
        if method != reference
    }
    by_rank = corrected({method: wilcoxon(values) for method, values in differences.items()})
    by_mean = corrected({method: permutation(values) for method, values in differences.items()})
    return tuple(Comparison(m, by_rank[m], by_mean[m], record[m, reference]) for m in differences)
