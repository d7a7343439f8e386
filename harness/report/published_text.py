"""Published numbers as a table with sentences, and as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from harness.errors import did_you_mean
from harness.report.block import EMPTY, Block
from harness.report.layout import Grid, Text
from harness.report.published import INCOMPARABLE, UNCLEAR, Beside, Published
from harness.report.statistics_text import interval_text, percent_of, points
from harness.report.text import one_line, value_text

HEADER = ("Dataset", "Method", "Ours", "Published", "Difference", "Verdict")


def block(found: Published) -> Block:
    """The cells that have a number on both sides, and what the paper or we lack."""
    if found.publication is None:
        return Block("Published numbers", EMPTY, (f"None: {found.problem}.",))
    title = f"Published numbers: {found.publication.name}"
    if not found.beside:
        return Block(title, EMPTY, (_citation(found), *_missing(found)))
    footnotes: list[str] = []
    rows = tuple(_row(one, footnotes) for one in found.beside)
    remarks = found.publication.remarks, _column_notes(found)
    sentences = (_citation(found), _rule(found), *remarks[0], *remarks[1], *_labels(found), *_missing(found))
    return Block(title, Grid(HEADER, rows, tuple(footnotes), words=2), tuple(s for s in sentences if s))


def _column_notes(found: Published) -> list[str]:
    """What belongs to the columns shown, with their names where it does not belong to all."""
    columns = {one.row.dataset: one.table.made[one.row.dataset].note for one in found.beside}
    notes = dict.fromkeys(filter(None, columns.values()))
    return [
        note if set(columns.values()) == {note} else f"{', '.join(c for c in columns if columns[c] == note)}: {note}"
        for note in notes
    ]


def _row(one: Beside, footnotes: list[str]) -> tuple[Text, ...]:
    told = _told(one)
    if told and told not in footnotes:
        footnotes.append(told)
    numbers = (footnotes.index(told) + 1,) if told else ()
    theirs = points(one.theirs.mean) + ("" if one.theirs.spread is None else f" ± {points(one.theirs.spread)}")
    difference = one.difference
    bare = difference.low is None and difference.estimate is not None
    return (
        Text(one_line(one.column.label)),
        Text(one_line(one.row.method)),
        Text(value_text(one.row)),
        Text(theirs),
        Text(points(difference.estimate or 0.0, signed=True) if bare else interval_text(difference, signed=True)),
        Text(one.verdict, notes=numbers),
    )


def _told(one: Beside) -> str:
    """The footnote of a verdict."""
    parts = []
    if one.verdict == INCOMPARABLE:
        parts.append(f"differs in {'; '.join(one.differs)}")
    elif one.verdict == UNCLEAR:
        parts.append(one.reason)
    parts += one.remarks
    return one_line("; ".join(parts))


def _citation(found: Published) -> str:
    assert found.publication is not None
    tables = dict.fromkeys(one.table.source for one in found.beside)
    runs = sorted({one.table.runs for one in found.beside if one.table.runs})
    count = f" over {' or '.join(map(str, runs))} runs" if runs else ""
    spread = f", mean ± {found.publication.spread}{count}" if found.beside else ""
    where = f" ({'; '.join(tables)}{spread})" if tables else ""
    return f"{found.publication.citation}{where}."


def _rule(found: Published) -> str:
    return (
        f"Difference: ours minus published in percentage points, with the {percent_of(found.level)} interval of "
        "Welch's t-test from both means, spreads and numbers of runs. Within noise: the interval includes zero, each "
        "cell by itself; that so few runs cannot tell two numbers apart does not make them equal."
    )


def _labels(found: Published) -> Iterable[str]:
    """What the paper calls rows, and what is known of them, for the rows shown."""
    for table in dict.fromkeys(one.table.name for one in found.beside):
        cells = [one for one in found.beside if one.table.name == table]
        shown = dict.fromkeys(one.row.method for one in cells)
        place = cells[0].table
        printed = [f"{m} is its {place.printed[m]}" for m in shown if m in place.printed]
        if printed:
            yield f"In {place.source}: {'; '.join(printed)}."
        for method in ("*", *shown):
            if method in place.notes:
                yield f"{place.source}{'' if method == '*' else f', {method}'}: {place.notes[method]}."


def _missing(found: Published) -> Iterable[str]:
    assert found.publication is not None
    methods = [m for table in found.publication.tables for m in table.rows]
    columns = [c for table in found.publication.tables for c in table.columns]
    if found.rows_missing:
        yield f"Rows that are not in the paper: {_named(found.rows_missing, methods)}."
    if found.columns_missing:
        yield f"Columns that are not in the paper: {_named(found.columns_missing, columns)}."
    if found.not_printed:
        yield f"Not printed in the paper: {_by_column(found.not_printed)}."
    if found.not_measured:
        pairs = [(method if why == "missing" else f"{method} ({why})", d) for method, d, why in found.not_measured]
        yield f"Printed in the paper and without a value of ours: {_by_column(pairs)}."
    if found.not_here:
        yield f"Rows of the paper that are not here: {', '.join(found.not_here)}."


def _by_column(pairs: Iterable[tuple[str, str]]) -> str:
    """``COLUMN: ROW, ROW; COLUMN: ROW``."""
    columns: dict[str, list[str]] = {}
    for method, column in pairs:
        columns.setdefault(column, []).append(method)
    return "; ".join(f"{column}: {', '.join(methods)}" for column, methods in columns.items())


def _named(labels: Iterable[str], known: list[str]) -> str:
    return ", ".join(f"{label}{did_you_mean(label, known)}" for label in labels)


def published_json(found: Published) -> dict[str, Any]:
    """All that was found; values of the paper and differences in percentage points."""
    publication = found.publication
    return {
        "name": None if publication is None else publication.name,
        "citation": None if publication is None else publication.citation,
        "problem": found.problem,
        "level": found.level,
        "remarks": [] if publication is None else list(publication.remarks),
        "rows": [_json(one) for one in found.beside],
        "rows_missing": list(found.rows_missing),
        "columns_missing": list(found.columns_missing),
        "not_printed": [list(pair) for pair in found.not_printed],
        "not_measured": [list(item) for item in found.not_measured],
        "not_here": list(found.not_here),
    }


def _json(one: Beside) -> dict[str, Any]:
    return {
        "dataset": one.row.dataset,
        "split": one.row.split,
        "method": one.row.method,
        "table": one.table.name,
        "source": one.table.source,
        "printed": one.table.printed.get(one.row.method, one.row.method),
        "mean": one.theirs.mean,
        "spread": one.theirs.spread,
        "spread_kind": one.table.spread,
        "runs": one.table.runs,
        "difference": asdict(one.difference),
        "verdict": one.verdict,
        "differs": list(one.differs),
        "remarks": list(one.remarks),
        "reason": one.reason,
    }
