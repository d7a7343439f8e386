"""From table rows to a grid of texts that every renderer shares: header, marked cells, footnotes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.report.average import AverageCell, AverageColumn
from harness.report.caption import METRICS
from harness.report.summary import Summary
from harness.report.table import Column, Table, TableRow
from harness.report.text import (
    difference_text,
    footnote,
    needs_footnote,
    one_line,
    percent,
    validation_text,
    value_text,
)

VALIDATION_FLAG = "†"
ORACLE_FLAG = "‡"


@dataclass(frozen=True)
class Text:
    """One entry of the grid.

    Attributes:
        text: what it says; ``rank`` is ``best``, ``second`` or empty.
        flags, notes: flag signs and footnote numbers.
        value: the number behind the text, to sort by; None for words and where there is none.
        row: the table row whose test value this is; None for every other entry.
    """

    text: str
    rank: str = ""
    flags: str = ""
    notes: tuple[int, ...] = ()
    value: float | None = None
    row: TableRow | None = None


@dataclass(frozen=True)
class Grid:
    """The table as texts; ``footnotes[i]`` has the number i + 1. The first ``words`` columns are words, not values."""

    header: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    footnotes: tuple[str, ...]
    words: int = 1

    @property
    def ranked(self) -> bool:
        """Whether any entry is marked as best."""
        return any(text.rank for row in self.rows for text in row)


def make_grid(
    table: Table, averages: Sequence[AverageColumn] = (), *, validation: bool = False, differences: bool = False
) -> Grid:
    """Lay the table out, with the validation value, the difference and the averages beside the test on request."""
    environments = any(row.environments for row in table.rows)
    tuned = any(row.configurations > 1 for row in table.rows)
    header = ["Method", *(["Environments"] if environments else []), *(["Configurations"] if tuned else [])]
    for column in table.columns:
        header.append(_heading(table, column))
        header += [f"{column.label}, validation"] if validation else []
        header += [f"{column.label}, Δ {table.results.reference}"] if differences else []
    header += [average.label for average in averages]
    footnotes: list[str] = []
    rows = []
    for method in table.results.methods:
        texts = [Text(one_line(method), flags=_method_flags(table, method))]
        texts += [Text(_by_dataset(table, method, "environments"))] if environments else []
        texts += [_configurations(table, method)] if tuned else []
        for column in table.columns:
            row = table.cell(method, column)
            texts.append(_cell(row, column, footnotes, table, method))
            texts += [_beside(row, row.validation if row else None, validation_text)] if validation else []
            texts += [_beside(row, row.difference if row else None, difference_text)] if differences else []
        texts += [_average(average.cell(method)) for average in averages]
        rows.append(tuple(texts))
    return Grid(tuple(map(one_line, header)), tuple(rows), tuple(footnotes), words=1 + environments)


def _heading(table: Table, column: Column) -> str:
    """The column's label, the edition of its data where they have one, and its metric where the table has several."""
    label = f"{column.label} ({column.version})" if column.version else column.label
    several = len({other.metric for other in table.columns}) > 1
    return f"{label}, {METRICS.get(column.metric, column.metric)}" if several else label


def _method_flags(table: Table, method: str) -> str:
    rows = [row for row in table.rows if row.method == method]
    return VALIDATION_FLAG if any(row.uses_validation_labels for row in rows) else ""


def _by_dataset(table: Table, method: str, name: str) -> str:
    """A fact of a method's rows: once where all datasets share it, else with each dataset that has it."""
    found = {row.dataset: getattr(row, name) for row in table.rows if row.method == method}
    if len(set(found.values())) == 1:
        return str(next(iter(found.values())) or "–")
    return "; ".join(f"{dataset}: {value}" for dataset, value in found.items() if value) or "–"


def _configurations(table: Table, method: str) -> Text:
    """How many configurations the method tried."""
    most = max((row.configurations for row in table.rows if row.method == method), default=None)
    return Text(_by_dataset(table, method, "configurations"), value=most)


def _cell(row: TableRow | None, column: Column, footnotes: list[str], table: Table, method: str) -> Text:
    if row is None:
        return Text("–")
    flags = ORACLE_FLAG if row.oracle_selection or row.oracle else ""
    shown = Text(value_text(row), row.rank, flags, value=row.test.mean, row=row)
    if not needs_footnote(row):
        return shown
    where = method if len(table.columns) == 1 else f"{method} on {column.label}"
    note = one_line(f"{where}: {footnote(row)}")
    if note not in footnotes:
        footnotes.append(note)
    return replace(shown, notes=(footnotes.index(note) + 1,))


def _beside(row: TableRow | None, summary: Summary | None, say: Callable[[TableRow], str]) -> Text:
    """An entry beside the test value: the validation value or the difference."""
    return Text("–" if row is None else say(row), value=None if summary is None else summary.mean)


def _average(cell: AverageCell) -> Text:
    text = percent(cell.summary)
    if cell.summary.n and cell.covered < cell.total:
        text += f" ({cell.covered}/{cell.total} datasets)"
    elif cell.summary.n == 1:
        text += " (n=1)"
    return Text(text, cell.rank, value=cell.summary.mean)
