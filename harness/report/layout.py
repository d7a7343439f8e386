"""The main table of a section, and the tables of the analyses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.analysis import Cell
from harness.errors import listed
from harness.report.caption import caption, table_notes
from harness.report.table import (
    ORACLE_FLAG,
    Text,
    TextTable,
    footnote,
    one_line,
    percent,
    summary_text,
    value_text,
    with_remarks,
)
from harness.results.aggregate import AverageColumn, Column, ResultTable
from harness.results.rows import METRICS
from harness.results.run_record import Finding
from harness.results.statistics import LEVEL
from harness.results.summary import Summary

VALIDATION_FLAG = "†"
NEAR_FLAG = "≈"
CANNOT_RUN = "n/a"
NEAR = (
    f"{NEAR_FLAG}: not distinguishable from the best of the column: the {LEVEL:.0%} t-interval of the difference, "
    "paired by seed, includes zero."
)


def results_table(
    table: ResultTable,
    averages: Sequence[AverageColumn] = (),
    near: Collection[tuple[str, str, str]] = (),
    *,
    validation: bool = False,
    differences: bool = False,
) -> TextTable:
    """Lay the results out, on request with the validation value, the difference and the averages beside the test.

    Args:
        near: (method, dataset, split) of the rows that are not distinguishable from the best of their column.
    """
    environments = any(row.environments for row in table.rows)
    tuned = any(row.configurations > 1 for row in table.rows)
    header = ["Method", *(["Environments"] if environments else []), *(["Configurations"] if tuned else [])]
    for column in table.columns:
        header.append(_heading(table, column))
        header += [f"{column.label}, validation"] if validation else []
        header += [f"{column.label}, Δ {table.results.reference}"] if differences else []
    header += [average.label for average in averages]
    footnotes = _footnotes(table)
    rows = []
    for method in table.results.methods:
        texts = [_method(table, method)]
        texts += [Text(_by_dataset(table, method, "environments"))] if environments else []
        most = max((row.configurations for row in table.rows if row.method == method), default=None)
        texts += [Text(_by_dataset(table, method, "configurations"), value=most)] if tuned else []
        for column in table.columns:
            row = table.cell(method, column)
            text = _entry(table, method, column, list(footnotes))
            place = method, column.dataset, column.split
            texts.append(replace(text, near=True, flags=f"{text.flags}{NEAR_FLAG}") if place in near else text)
            texts += [_beside(row.validation if row else None)] if validation else []
            texts += [_beside(row.difference if row else None, signed=True)] if differences else []
        texts += [_average(table, method, average) for average in averages]
        rows.append(tuple(texts))
    return TextTable(
        header=tuple(map(one_line, header)),
        rows=tuple(rows),
        words=1 + environments,
        about=environments + tuned,
        footnotes=tuple(footnotes.values()),
        caption=caption(table),
        notes=(*((NEAR,) if near else ()), *table_notes(table, averages, differences=differences)),
        selected=_selected(table),
    )


def _heading(table: ResultTable, column: Column) -> str:
    """Return the column's label, the edition of its data if it has one, and its metric if the table has several."""
    label = f"{column.label} ({column.version})" if column.version else column.label
    several = len({other.metric for other in table.columns}) > 1
    return f"{label}, {METRICS.get(column.metric, column.metric)}" if several else label


def _method(table: ResultTable, method: str) -> Text:
    uses = any(row.uses_validation_labels for row in table.rows if row.method == method)
    return Text(one_line(method), flags=VALIDATION_FLAG if uses else "")


def _by_dataset(table: ResultTable, method: str, name: str) -> str:
    """Return a fact of a method's rows: once if all datasets share it, else "by dataset", which a note tells."""
    values = {getattr(row, name) for row in table.rows if row.method == method}
    return "by dataset" if len(values) > 1 else str(next(iter(values), "") or "–")


def _footnotes(table: ResultTable) -> dict[tuple[str, str], str]:
    """Return a note for each reason in a method, with the columns where it holds, in reading order."""
    columns: dict[tuple[str, str], list[str]] = {}
    for method in table.results.methods:
        for column in table.columns:
            place = _note(table, method, column)
            if place[1]:
                columns.setdefault(place, []).append(column.label)
    several = len(table.columns) > 1
    return {
        (who, reason): one_line(f"{who}{f' on {listed(labels)}' if several and who != CANNOT_RUN else ''}: {reason}")
        for (who, reason), labels in columns.items()
    }


def _note(table: ResultTable, method: str, column: Column) -> tuple[str, str]:
    """Return whom a footnote concerns, a method or all that cannot run on a dataset, and what it says, if anything."""
    row = table.cell(method, column)
    return (method, footnote(row)) if row else (CANNOT_RUN, one_line(table.results.why_not(column.dataset, method)))


def _entry(table: ResultTable, method: str, column: Column, reasons: list[tuple[str, str]]) -> Text:
    row, place = table.cell(method, column), _note(table, method, column)
    notes = (reasons.index(place) + 1,) if place in reasons else ()
    if row is None:
        return Text(CANNOT_RUN if notes else "–", notes=notes)
    flags = ORACLE_FLAG if row.uses_oracle else ""
    return Text(value_text(row), row.rank, flags, notes, row.test.mean, row)


def _beside(summary: Summary | None, *, signed: bool = False) -> Text:
    """Return an entry beside the test value: the validation value or the difference."""
    return Text("–") if summary is None else Text(summary_text(summary, signed=signed), value=summary.mean)


def _average(table: ResultTable, method: str, average: AverageColumn) -> Text:
    cell, total = average.cells[method], len(average.columns)
    rows = [row for column in average.columns if (row := table.cell(method, column))]
    flags = ORACLE_FLAG if any(row.uses_oracle for row in rows) else ""
    remarks = []
    if cell.summary.n and cell.covered < total:
        remarks.append(f"{cell.covered}/{total} datasets")
    elif cell.summary.n == 1:
        remarks.append("n=1")
    if cell.summary.n and any(row.provisional for row in rows):
        remarks.append("provisional")
    return Text(with_remarks(percent(cell.summary), remarks), cell.rank, flags, value=cell.summary.mean)


def _selected(table: ResultTable) -> tuple[str, ...]:
    """Return a line for each tuned method and dataset, however many test splits the dataset has."""
    lines = dict.fromkeys(
        f"{row.method} on {row.dataset}: {row.config_id}{' (provisional)' if row.provisional else ''}"
        for row in table.rows
        if row.configurations > 1 and row.config_id is not None
    )
    return tuple(lines)


def finding_table(finding: Finding, folder: Path) -> TextTable:
    """Lay one analysis out."""
    title = f"Analysis: {_title(finding)}"
    wrong = (f"{finding.status}: {one_line(finding.reason)}",) if finding.status != "ok" else ()
    if wrong and not finding.columns:
        return TextTable(title, caption=wrong)
    rows = tuple(tuple(map(_cell_text, row, finding.columns)) for row in finding.rows)
    numbers = (place for place, cell in enumerate(finding.rows[0]) if not isinstance(cell, str)) if rows else iter(())
    words = next(numbers, len(finding.columns))
    figure = str(folder / finding.figures[0]) if finding.figures else ""
    return TextTable(
        title, tuple(map(one_line, finding.columns)), rows, words, caption=(*wrong, *_notes(finding)), figure=figure
    )


def finding_json(finding: Finding, folder: Path) -> dict[str, Any]:
    """Return one analysis as plain data, its figures with their folder."""
    return {**vars(finding), "notes": _notes(finding), "figures": [str(folder / name) for name in finding.figures]}


def _title(finding: Finding) -> str:
    """Return the label, and the component with its values unless that is the label."""
    values = ", ".join(f"{name}={value}" for name, value in finding.params.items())
    component = f"{finding.analysis}({values})" if values else finding.analysis
    return finding.label if finding.label == component else f"{finding.label} [{component}]"


def _cell_text(cell: Cell, column: str) -> Text:
    """Return a cell; a number has three decimals, one in percent two, as in the table of results."""
    if isinstance(cell, float):
        return Text(f"{cell:.2f}" if column.endswith(", %") else f"{cell:.3f}")
    return Text("–" if cell is None else one_line(str(cell)))


def _notes(finding: Finding) -> list[str]:
    """Return the notes, and what the analysis read that no method may see."""
    opened = [f"Opens {', '.join(finding.opens)}, which no method sees."] if finding.opens else []
    return [*finding.notes, *opened]
