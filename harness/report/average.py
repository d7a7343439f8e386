"""The average over datasets, made only when asked for, and never over in-distribution and shifted splits at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.data import in_distribution
from harness.report.rank import rank
from harness.report.summary import Summary
from harness.report.table import Column, Table, TableRow
from harness.results.means import mean


@dataclass(frozen=True)
class AverageCell:
    """One method's average: ``summary`` over seeds of the mean over datasets; ``covered`` of ``total`` datasets."""

    method: str
    summary: Summary
    covered: int
    total: int
    rank: str = ""


@dataclass(frozen=True)
class AverageColumn:
    """An average over columns of one metric, all in-distribution or all shifted.

    ``excluded`` are the columns in which no method has a value.
    """

    label: str
    columns: tuple[Column, ...]
    excluded: tuple[Column, ...]
    cells: tuple[AverageCell, ...]

    def cell(self, method: str) -> AverageCell:
        """The average of a method."""
        return next(cell for cell in self.cells if cell.method == method)


def averages(table: Table) -> list[AverageColumn]:
    """One average for each metric and kind of split that at least two columns share."""
    groups: dict[tuple[str, bool, bool], list[Column]] = {}
    for column in table.columns:
        groups.setdefault((column.metric, column.higher_is_better, in_distribution(column.split)), []).append(column)
    several = len(groups) > 1
    return [
        _average(table, columns, f"Average ({metric}, {'ID' if inside else 'OOD'})" if several else "Average")
        for (metric, _, inside), columns in groups.items()
        if len(columns) > 1
    ]


def _average(table: Table, columns: Sequence[Column], label: str) -> AverageColumn:
    used = tuple(column for column in columns if any(row.test.n for row in table.column(column)))
    excluded = tuple(column for column in columns if column not in used)
    cells = [_cell(table, method, used) for method in table.results.methods]
    means = [cell.summary.mean if _competes(table, cell, used) else None for cell in cells]
    marks = rank(means, higher_is_better=columns[0].higher_is_better) if len(cells) > 1 else [""] * len(cells)
    ranked = tuple(replace(cell, rank=mark) for cell, mark in zip(cells, marks, strict=True))
    return AverageColumn(label, used, excluded, ranked)


def _cell(table: Table, method: str, columns: Sequence[Column]) -> AverageCell:
    """The mean over the datasets that the method completed, seed by seed, so that its spread is one over seeds."""
    complete = [row for row in _rows(table, method, columns) if row.test.complete]
    per_seed: list[float | None] = []
    for position in range(len(table.results.seeds)):
        values = [value for row in complete if (value := row.test.values[position]) is not None]
        per_seed.append(mean(values) if values else None)
    return AverageCell(method, Summary(tuple(per_seed)), len(complete), len(columns))


def _competes(table: Table, cell: AverageCell, columns: Sequence[Column]) -> bool:
    flagged = any(r.provisional or r.oracle_selection or r.oracle for r in _rows(table, cell.method, columns))
    return cell.covered == cell.total and cell.summary.complete and not flagged


def _rows(table: Table, method: str, columns: Sequence[Column]) -> list[TableRow]:
    return [row for column in columns if (row := table.cell(method, column)) is not None]
