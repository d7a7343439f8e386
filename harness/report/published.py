"""Numbers that a paper prints beside ours: the difference, whether it is within noise, and what is not comparable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from harness.data import in_distribution
from harness.errors import UserError, did_you_mean
from harness.report.table import Text, TextTable
from harness.report.text import interval_text, one_line, percent_of, points, value_text
from harness.results.aggregate import ResultTable, TableRow, by_value
from harness.results.compare import tuned_paths, unequal
from harness.results.published import Publication, PublishedColumn, PublishedTable, PublishedValue, load_published
from harness.results.rows import DatasetFacts
from harness.results.statistics import LEVEL, Interval, Sample, welch_interval
from harness.suite.settings import LAST

WITHIN, OUTSIDE, UNCLEAR, INCOMPARABLE = "within noise", "outside noise", "no verdict", "not comparable"
HEADER = ("Dataset", "Method", "Ours", "Published", "Difference", "Verdict")


@dataclass(frozen=True)
class PublishedCell:
    """The number that a paper prints for one of our table rows, in percent.

    Attributes:
        table, source, printed: the table, its place in the paper, and the paper's own name of the row.
        spread_kind: ``standard deviation`` or ``standard error``; ``runs``: how many trainings it averages.
        difference: ours minus theirs in percentage points, with Welch's interval if the two are comparable.
        verdict: :data:`WITHIN` if the interval includes zero, :data:`OUTSIDE` if not, :data:`INCOMPARABLE`, or
            :data:`UNCLEAR`, with ``reason``.
        differs: why the two are not comparable, e.g. ``train.epochs 30, not 50``; empty if they are.
        remarks: differences that do not stand in the way, e.g. ``5 runs, not 3``.
    """

    dataset: str
    split: str
    method: str
    table: str
    source: str
    printed: str
    mean: float
    spread: float | None
    spread_kind: str
    runs: int | None
    difference: Interval
    verdict: str
    differs: tuple[str, ...]
    remarks: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class PublishedComparison:
    """A table of ours beside a publication.

    Attributes:
        name, citation: of the publication; None if there is none of this name, and ``problem`` says so.
        remarks: sentences that belong to every comparison with its numbers.
        rows: the cells with a number on both sides, by column and in the order of the rows.
        rows_missing, columns_missing: rows and columns of ours that the paper does not have.
        not_printed: (method, dataset) whose row and column it has, without a number for the pair.
        not_measured: (method, dataset, why) with a number in the paper and none of ours yet.
        not_here: rows that it has for our columns, and we do not.
    """

    name: str | None
    citation: str | None
    problem: str = ""
    level: float = LEVEL
    remarks: tuple[str, ...] = ()
    rows: tuple[PublishedCell, ...] = ()
    rows_missing: tuple[str, ...] = ()
    columns_missing: tuple[str, ...] = ()
    not_printed: tuple[tuple[str, str], ...] = ()
    not_measured: tuple[tuple[str, str, str], ...] = ()
    not_here: tuple[str, ...] = ()


def compare_published(table: ResultTable, name: str) -> PublishedComparison:
    """Look every cell of a table up in a publication; an unknown name becomes ``problem``, as runs outlive names."""
    try:
        publication = load_published(name)
    except UserError as error:
        return PublishedComparison(None, None, problem=str(error))
    scores = [t for t in publication.tables if t.unit == "percent"]
    methods = dict.fromkeys(method for t in scores for method in t.rows)
    columns = {column for t in scores for column in t.columns}
    cells, not_printed, not_measured = [], [], []
    for column in table.columns:
        for row in table.column(column):
            place = publication.find(row.method, row.dataset, row.metric)
            if place is not None and row.test.n:
                cells.append(_compare(table, row, publication, *place))
            elif place is not None:
                not_measured.append((row.method, column.label, row.status))
            elif row.method in methods and row.dataset in columns:
                not_printed.append((row.method, column.label))
    ours = {column.dataset for column in table.columns}
    printed = [m for m in methods if any(ours & t.rows.get(m, {}).keys() for t in scores)]
    return PublishedComparison(
        publication.name,
        publication.citation,
        remarks=publication.remarks,
        rows=tuple(cells),
        rows_missing=tuple(m for m in table.results.methods if m not in methods),
        columns_missing=tuple(dict.fromkeys(c.dataset for c in table.columns if c.dataset not in columns)),
        not_printed=tuple(not_printed),
        not_measured=tuple(not_measured),
        not_here=tuple(m for m in printed if m not in table.results.methods),
    )


def _compare(
    table: ResultTable, row: TableRow, publication: Publication, place: PublishedTable, theirs: PublishedValue
) -> PublishedCell:
    spread = None if row.test.spread is None else 100 * row.test.spread
    ours = Sample(row.test.n, 100 * (row.test.mean or 0.0), spread)
    difference = welch_interval(ours, printed_sample(place, theirs))
    differs = tuple(_differs(table, row, place, publication.free))
    if differs:
        difference = replace(difference, low=None, high=None, reason=INCOMPARABLE)
        verdict, reason = INCOMPARABLE, ""
    else:
        if place.runs is None:
            difference = replace(difference, reason="the number of the paper's runs is not stated")
        verdict = UNCLEAR if difference.low is None else OUTSIDE if difference.excludes_zero else WITHIN
        reason = difference.reason
    return PublishedCell(
        dataset=row.dataset,
        split=row.split,
        method=row.method,
        table=place.name,
        source=place.source,
        printed=place.printed.get(row.method, row.method),
        mean=theirs.mean,
        spread=theirs.spread,
        spread_kind=place.spread,
        runs=place.runs,
        difference=difference,
        verdict=verdict,
        differs=differs,
        remarks=_remarks(row, place),
        reason=reason,
    )


def printed_sample(place: PublishedTable, value: PublishedValue) -> Sample:
    """Return a printed number as a sample; without a stated number of runs nothing can be said of its error."""
    runs, spread = place.runs or 1, value.spread
    if spread is not None and place.spread == "standard error":
        spread *= sqrt(runs)
    return Sample(runs, value.mean, spread)


def _remarks(row: TableRow, place: PublishedTable) -> tuple[str, ...]:
    remarks = []
    if place.runs is not None and row.test.n != place.runs:
        remarks.append(f"{row.test.n} run{'s' if row.test.n > 1 else ''}, not {place.runs}")
    if place.tuned and row.configurations == 1:
        remarks.append("not tuned here")
    return tuple(remarks)


def _differs(table: ResultTable, row: TableRow, place: PublishedTable, free: Sequence[str]) -> list[str]:
    """List what makes a number of ours another thing than the paper's."""
    results, conditions = table.results, place.conditions.get(row.dataset, PublishedColumn())
    metric, checkpoint = place.metrics[row.dataset], LAST if row.checkpoint == LAST else "best-val"
    reasons = [f"metric {row.metric}, not {metric}"] if metric != row.metric else []
    if place.protocol and place.protocol != results.protocol:
        reasons.append(f"protocol {results.protocol}, not {place.protocol}")
    if in_distribution(row.split) != (conditions.split == "in-distribution"):
        reasons.append(f"split {row.split}, not {conditions.split}")
    if place.checkpoint and place.checkpoint != checkpoint:
        reasons.append(f"checkpoint {checkpoint}, not {place.checkpoint}")
    if row.oracle_selection:
        reasons.append("configuration selected on test scores")
    if row.oracle:
        reasons.append(f"oracle information ({', '.join(row.oracle)})")
    reasons += _data_differs(results.dataset(row.dataset), conditions, free)
    entry = results.entry(row.dataset, row.method)
    if entry is None or not entry.settings or not conditions.settings:  # known only once a cell has been trained
        return reasons
    tuned = tuned_paths(entry)
    return reasons + _unequal(entry.settings, {p: v for p, v in conditions.settings.items() if p not in tuned}, free)


def _data_differs(ours: DatasetFacts, conditions: PublishedColumn, free: Sequence[str]) -> list[str]:
    reasons = []
    version = conditions.version
    if version and ours.version != version and not ours.version.startswith(f"{version},"):
        edition = ours.version.partition(",")[0] or "not stated"
        reasons.append(f"data version {edition}, not {version}")
    if not conditions.component or not ours.component:
        return reasons
    if ours.component != conditions.component:
        return [*reasons, f"data {ours.component}, not {conditions.component}"]
    return reasons + [f"data: {line}" for line in _unequal(ours.values, conditions.values, free)]


def _unequal(ours: Mapping[str, Any], theirs: Mapping[str, Any], free: Sequence[str]) -> list[str]:
    """List ``NAME OURS, not THEIRS`` for each value that differs and is not free to."""
    return [
        f"{name} {here}, not {there}"
        for name, there, here in unequal(theirs, ours)
        if name.rpartition(".")[2] not in free
    ]


def published_table(compared: PublishedComparison, table: ResultTable) -> TextTable:
    """Lay out the cells that have a number on both sides, and name what the paper or we lack."""
    if compared.name is None:
        return TextTable("Published numbers", caption=(f"None: {compared.problem}.",))
    title, publication = f"Published numbers: {compared.name}", load_published(compared.name)
    missing = _missing(compared, publication)
    if not compared.rows:
        return TextTable(title, caption=(f"{publication.citation}.", *missing))
    footnotes: list[str] = []
    columns = {(column.dataset, column.split): column for column in table.columns}
    rows = []
    for cell in compared.rows:
        column = columns[cell.dataset, cell.split]
        row = table.cell(cell.method, column)
        assert row is not None
        rows.append(_texts(cell, column.label, row, footnotes))
    rule = (
        f"Difference: ours minus published in percentage points, with the {percent_of(compared.level)} interval of "
        "Welch's t-test from both means, spreads and numbers of runs. Within noise: the interval includes zero, each "
        "cell by itself; that so few runs cannot tell two numbers apart does not make them equal."
    )
    caption = (
        _citation(compared.rows, publication),
        rule,
        *compared.remarks,
        *_column_notes(compared.rows, publication),
        *_row_notes(compared.rows, publication),
        *missing,
    )
    return TextTable(title, HEADER, tuple(rows), words=2, footnotes=tuple(footnotes), caption=caption)


def _texts(cell: PublishedCell, label: str, row: TableRow, footnotes: list[str]) -> tuple[Text, ...]:
    parts = [f"differs in {'; '.join(cell.differs)}"] if cell.verdict == INCOMPARABLE else []
    parts += [cell.reason] if cell.verdict == UNCLEAR else []
    note = one_line("; ".join([*parts, *cell.remarks]))
    if note and note not in footnotes:
        footnotes.append(note)
    numbers = (footnotes.index(note) + 1,) if note else ()
    theirs = points(cell.mean) + ("" if cell.spread is None else f" ± {points(cell.spread)}")
    difference, estimate = interval_text(cell.difference, signed=True), cell.difference.estimate
    if cell.difference.low is None and estimate is not None:
        difference = points(estimate, signed=True)
    words = (one_line(label), one_line(cell.method), value_text(row), theirs, difference)
    return (*map(Text, words), Text(cell.verdict, notes=numbers))


def _citation(cells: Sequence[PublishedCell], publication: Publication) -> str:
    sources = "; ".join(dict.fromkeys(cell.source for cell in cells))
    runs = sorted({cell.runs for cell in cells if cell.runs})
    count = f" over {' or '.join(map(str, runs))} runs" if runs else ""
    return f"{publication.citation} ({sources}, mean ± {publication.spread}{count})."


def _column_notes(cells: Sequence[PublishedCell], publication: Publication) -> list[str]:
    """Return the notes on the columns shown, with the names of the columns unless a note is about all."""
    notes = {cell.dataset: publication.table(cell.table).conditions[cell.dataset].note for cell in cells}
    columns = by_value((column, note) for column, note in notes.items() if note)
    return [note if len(names) == len(notes) else f"{', '.join(names)}: {note}" for note, names in columns.items()]


def _row_notes(cells: Sequence[PublishedCell], publication: Publication) -> Iterable[str]:
    """Yield the paper's names of the rows shown, and what is known of them."""
    for name in dict.fromkeys(cell.table for cell in cells):
        place = publication.table(name)
        methods = dict.fromkeys(cell.method for cell in cells if cell.table == name)
        printed = [f"{m} is its {place.printed[m]}" for m in methods if m in place.printed]
        if printed:
            yield f"In {place.source}: {'; '.join(printed)}."
        for method in ("*", *methods):
            if method in place.notes:
                yield f"{place.source}{'' if method == '*' else f', {method}'}: {place.notes[method]}."


def _missing(compared: PublishedComparison, publication: Publication) -> list[str]:
    methods = [m for table in publication.tables for m in table.rows]
    columns = [c for table in publication.tables for c in table.columns]
    not_measured = [(m if why == "missing" else f"{m} ({why})", column) for m, column, why in compared.not_measured]
    parts = {
        "Rows that are not in the paper": _named(compared.rows_missing, methods),
        "Columns that are not in the paper": _named(compared.columns_missing, columns),
        "Not printed in the paper": _by_column(compared.not_printed),
        "Printed in the paper and without a value of ours": _by_column(not_measured),
        "Rows of the paper that are not here": ", ".join(compared.not_here),
    }
    return [f"{what}: {names}." for what, names in parts.items() if names]


def _named(labels: Iterable[str], known: list[str]) -> str:
    return ", ".join(f"{label}{did_you_mean(label, known)}" for label in labels)


def _by_column(pairs: Iterable[tuple[str, str]]) -> str:
    """Return ``COLUMN: ROW, ROW; COLUMN: ROW``."""
    return "; ".join(f"{column}: {', '.join(methods)}" for column, methods in by_value(pairs).items())
