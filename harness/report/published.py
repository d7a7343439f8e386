"""Numbers that a paper prints beside ours: the difference, whether it is within noise, and what is not comparable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.data import in_distribution
from harness.errors import UserError, did_you_mean, listed
from harness.report.table import ORACLE_FLAG, Text, TextTable, interval_text, one_line, points, value_text
from harness.results.aggregate import ResultTable, TableRow, build_table, by_value
from harness.results.compare import not_comparable, paired, tuned_paths, unequal
from harness.results.published import (
    RECORD,
    Publication,
    PublishedColumn,
    PublishedTable,
    PublishedValue,
    load_published,
)
from harness.results.record import Recorded, recorded_entries
from harness.results.rows import DatasetFacts, MethodFacts
from harness.results.statistics import LEVEL, Interval, Sample, mean_interval, welch_interval
from harness.results.summary import paired_difference
from harness.suite.settings import LAST, checkpoint_word

_DIFFERENCE = f"Difference: ours minus published in percentage points, with the {LEVEL:.0%} interval"
_WITHIN = (
    "Within noise: the interval includes zero, each cell by itself; that so few runs cannot tell two numbers apart "
    "does not make them equal."
)
WITHIN, OUTSIDE, UNCLEAR, INCOMPARABLE = "within noise", "outside noise", "no verdict", "not comparable"


@dataclass(frozen=True)
class PublishedCell:
    """The number that a paper prints for one of our table rows, in percent.

    Attributes:
        table, source: the table, and its place in the paper.
        runs: how many trainings it averages.
        difference: ours minus theirs in percentage points, with an interval if the two are comparable.
        verdict: :data:`WITHIN` if the interval includes zero, :data:`OUTSIDE` if not, :data:`INCOMPARABLE`, or
            :data:`UNCLEAR` without an interval.
        differs: why the two are not comparable, e.g. ``train.epochs 30, not 50``; empty if they are.
        remarks: differences that do not stand in the way, e.g. ``5 runs, not 3``.
    """

    dataset: str
    split: str
    method: str
    table: str
    source: str
    mean: float
    spread: float | None
    runs: int
    difference: Interval
    verdict: str
    differs: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def note(self) -> str:
        """What the verdict leaves out."""
        differs = [f"differs in {'; '.join(self.differs)}"] if self.differs else []
        unclear = [self.difference.reason] if self.verdict == UNCLEAR else []
        return "; ".join([*differs, *unclear, *self.remarks])


@dataclass(frozen=True)
class PublishedComparison:
    """A table of ours beside a publication.

    Attributes:
        name, citation: of the publication; None if there is none of this name, and ``problem`` says so.
        rows: the cells with a number on both sides, by column and in the order of the rows.
        rows_missing, columns_missing: rows and columns of ours that the paper does not have.
        not_here: rows that it has for our columns, and we do not.
        caption: sentences on where its numbers are from and how they are compared.
    """

    name: str | None
    citation: str | None
    problem: str = ""
    rows: tuple[PublishedCell, ...] = ()
    rows_missing: tuple[str, ...] = ()
    columns_missing: tuple[str, ...] = ()
    not_here: tuple[str, ...] = ()
    caption: tuple[str, ...] = ()


def compare_published(table: ResultTable, name: str) -> PublishedComparison:
    """Look every cell of a table up in a publication or in the record.

    An unknown name becomes ``problem``, as runs outlive names.
    """
    if name == RECORD:
        return _compare_recorded(table)
    try:
        publication = load_published(name)
    except UserError as error:
        return PublishedComparison(None, None, problem=str(error))
    cells = []
    for column in table.columns:
        for row in table.column(column):
            place = publication.find(row.method, row.dataset)
            if place is not None and row.test.n:
                cells.append(_compare(table, row, publication, *place))
    ours, methods = [column.dataset for column in table.columns], table.results.methods
    theirs = {method: rows for printed in publication.tables for method, rows in printed.rows.items()}
    compared = PublishedComparison(
        publication.name,
        publication.citation,
        rows=tuple(cells),
        rows_missing=tuple(method for method in methods if method not in theirs),
        columns_missing=tuple(dict.fromkeys(dataset for dataset in ours if dataset not in publication.columns)),
        not_here=tuple(m for m in theirs if m not in methods and any(publication.find(m, d) for d in ours)),
    )
    return replace(compared, caption=tuple(_caption(compared, publication)))


def _compare_recorded(table: ResultTable) -> PublishedComparison:
    """Look every cell of a table up in the record: the same row, on the same data where the record has them."""
    ours, cells, others = table.results, list[PublishedCell](), dict[str, None]()
    for column in table.columns:
        for run, entry in recorded_entries(ours.dataset(column.dataset)):
            row = table.cell(entry.method, column)
            if row is None:
                others[entry.method] = None
            elif row.test.n:
                cells += _recorded_cell(table, row, run, entry)
    sources = "; ".join(dict.fromkeys(cell.source for cell in cells))
    told = [
        f"Rows of the record: {sources}.",
        f"{_DIFFERENCE} paired by seed where both have two or more in common, else Welch's. {_WITHIN}",
    ]
    caption = told if cells else ["The record has none of these rows on these data."]
    if others:
        caption += [f"Recorded on these data, and not here: {listed(others)}."]
        caption += ["bench compare-to-record puts those that are comparable beside these rows."]
    return PublishedComparison(RECORD, "The record of this repository", rows=tuple(cells), caption=tuple(caption))


def _recorded_cell(table: ResultTable, row: TableRow, run: Recorded, entry: MethodFacts) -> Iterator[PublishedCell]:
    """Yield the cell of a recorded row beside ours; none where it has no value under our checkpoint rule."""
    ours, checkpoint = table.results.entry(row.dataset, row.method), checkpoint_word(row.checkpoint)
    assert ours is not None
    run, entry = run.at_settings(entry, ours)
    recorded = build_table(run.results.of({entry.dataset}, {entry.method}), checkpoint)
    other = next((one for one in recorded.rows if one.split == row.split), None)
    if other is None or other.test.mean is None:
        return
    common, theirs = paired(table.results, row, run.results, other), _sample(other)
    if len(common) > 1:
        differences = paired_difference(*zip(*common.values(), strict=True))
        difference = mean_interval(differences.values).times(100)
    else:
        difference = welch_interval(_sample(row), theirs)
    differs = tuple(not_comparable(table.results, ours, run.results, entry, checkpoint))
    if ours.environments != entry.environments:
        differs += (f"environments: {ours.environments or 'none'} / {entry.environments or 'none'}",)
    part = 1 < len(common) < max(len(table.results.seeds), len(run.results.seeds))
    remarks = (f"difference over seeds {', '.join(map(str, common))}",) if part else ()
    cell = row.dataset, row.split, row.method, run.results.suite, run.source, theirs.mean, theirs.deviation
    yield PublishedCell(*cell, other.test.n, *_judged(difference, differs), differs, remarks)


def _sample(row: TableRow) -> Sample:
    """Return a row's values in percent."""
    return Sample(row.test.n, 100 * (row.test.mean or 0.0), row.test.spread and 100 * row.test.spread)


def _judged(difference: Interval, differs: Sequence[str]) -> tuple[Interval, str]:
    """Return the difference, without an interval if the two are not comparable, and the verdict on it."""
    if differs:
        return replace(difference, low=None, high=None, reason=INCOMPARABLE), INCOMPARABLE
    if difference.low is None:
        return difference, UNCLEAR
    return difference, OUTSIDE if difference.excludes_zero else WITHIN


def _compare(
    table: ResultTable, row: TableRow, publication: Publication, place: PublishedTable, theirs: PublishedValue
) -> PublishedCell:
    difference = welch_interval(_sample(row), Sample(publication.runs, theirs.mean, theirs.spread))
    differs = tuple(_differs(table, row, publication))
    runs = f"{row.test.n} run{'s' if row.test.n > 1 else ''}, not {publication.runs}"
    remarks = [runs] if row.test.n != publication.runs else []
    remarks += ["not tuned here"] if publication.tuned and row.configurations == 1 else []
    cell = row.dataset, row.split, row.method, place.name, place.source, theirs.mean, theirs.spread
    return PublishedCell(*cell, publication.runs, *_judged(difference, differs), differs, tuple(remarks))


def _differs(table: ResultTable, row: TableRow, publication: Publication) -> list[str]:
    """List what makes a number of ours another thing than the paper's."""
    results, column = table.results, publication.columns[row.dataset]
    facts = {
        "metric": (row.metric, column.metric),
        "protocol": (results.protocol, publication.protocol),
        "checkpoint": (LAST if row.checkpoint == LAST else "best-val", publication.checkpoint),
    }
    reasons = [f"{name} {ours}, not {theirs}" for name, (ours, theirs) in facts.items() if ours != theirs]
    if in_distribution(row.split):
        reasons.append(f"split {row.split}, not out-of-distribution")
    if row.oracle_selection:
        reasons.append("configuration selected on test scores")
    if row.oracle:
        reasons.append(f"oracle information ({', '.join(row.oracle)})")
    reasons += _data_differs(results.dataset(row.dataset), column, publication.free)
    entry = results.entry(row.dataset, row.method)
    if entry is None or not entry.settings:  # known only once a cell has been trained
        return reasons
    tuned = tuned_paths(entry)
    settings = {path: value for path, value in column.settings.items() if path not in tuned}
    return reasons + _unequal(entry.settings, settings, publication.free)


def _data_differs(ours: DatasetFacts, theirs: PublishedColumn, free: Sequence[str]) -> list[str]:
    reasons = []
    edition = ours.version.partition(",")[0]
    if theirs.version and edition != theirs.version:
        reasons.append(f"data version {edition or 'not stated'}, not {theirs.version}")
    if not ours.component:
        return reasons
    if ours.component != theirs.component:
        return [*reasons, f"data {ours.component}, not {theirs.component}"]
    return reasons + [f"data: {line}" for line in _unequal(ours.values, theirs.values, free)]


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
    columns = {(column.dataset, column.split): column for column in table.columns}
    footnotes: dict[str, int] = {}
    rows = []
    for cell in compared.rows:
        column = columns[cell.dataset, cell.split]
        row = table.cell(cell.method, column)
        assert row is not None
        theirs = points(cell.mean) + ("" if cell.spread is None else f" ± {points(cell.spread)}")
        difference, estimate = interval_text(cell.difference, signed=True), cell.difference.estimate
        if cell.difference.low is None and estimate is not None:
            difference = points(estimate, signed=True)
        words = one_line(column.label), one_line(cell.method)
        ours = Text(value_text(row), flags=ORACLE_FLAG if row.uses_oracle else "")
        note = one_line(cell.note)
        notes = (footnotes.setdefault(note, len(footnotes) + 1),) if note else ()
        rows.append((*map(Text, words), ours, Text(theirs), Text(difference), Text(cell.verdict, notes=notes)))
    title = f"Published numbers: {compared.name}"
    header = ("Dataset", "Method", "Ours", "Published", "Difference", "Verdict") if rows else ()
    return TextTable(title, header, tuple(rows), words=2, footnotes=tuple(footnotes), caption=compared.caption)


def _caption(compared: PublishedComparison, publication: Publication) -> Iterator[str]:
    """Yield the source of the numbers, how they are compared, and what is known of them."""
    if compared.rows:
        sources = "; ".join(dict.fromkeys(cell.source for cell in compared.rows))
        yield f"{publication.citation} ({sources}, mean ± {publication.spread} over {publication.runs} runs)."
        yield f"{_DIFFERENCE} of Welch's t-test from both means, spreads and numbers of runs. {_WITHIN}"
        yield from (*publication.remarks, *_notes(compared.rows, publication))
    else:
        yield f"{publication.citation}."
    yield from _missing(compared, publication)


def _notes(cells: Sequence[PublishedCell], publication: Publication) -> Iterable[str]:
    """Yield what is known of the columns and rows shown, and the paper's names of rows."""
    noted = by_value((d, publication.columns[d].note) for d in dict.fromkeys(cell.dataset for cell in cells))
    for note, columns in noted.items():
        if note:
            yield f"{', '.join(columns)}: {note}"
    for place in publication.tables:
        methods = dict.fromkeys(cell.method for cell in cells if cell.table == place.name)
        printed = [f"{m} is its {place.printed[m]}" for m in methods if m in place.printed]
        if printed:
            yield f"In {place.source}: {'; '.join(printed)}."
        for method in ("*", *methods) if methods else ():
            if method in place.notes:
                yield f"{place.source}{'' if method == '*' else f', {method}'}: {place.notes[method]}."


def _missing(compared: PublishedComparison, publication: Publication) -> list[str]:
    methods = [method for table in publication.tables for method in table.rows]
    parts = {
        "Rows that are not in the paper": [f"{listed([m])}{did_you_mean(m, methods)}" for m in compared.rows_missing],
        "Columns that are not in the paper": [
            f"{listed([c])}{did_you_mean(c, publication.columns)}" for c in compared.columns_missing
        ],
        "Rows of the paper that are not here": [listed([m]) for m in compared.not_here],
    }
    return [f"{what}: {', '.join(names)}." for what, names in parts.items() if names]
