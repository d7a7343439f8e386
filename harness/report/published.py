"""Numbers that a paper prints beside ours: the difference, whether it is within noise, and what is not comparable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from harness.data import in_distribution
from harness.errors import UserError
from harness.report.table import Column, Table, TableRow
from harness.results.intervals import LEVEL, Interval, Sample, welch_interval
from harness.results.published import Publication, PublishedColumn, PublishedTable, PublishedValue, load_published
from harness.results.rows import LAST, DatasetFacts
from harness.store import canonical

WITHIN, OUTSIDE, UNCLEAR, INCOMPARABLE = "within noise", "outside noise", "no verdict", "not comparable"


@dataclass(frozen=True)
class Beside:
    """One of our cells and the number that the paper prints for it.

    Attributes:
        table, theirs: where it is printed, and what; percent.
        differs: why the two are not comparable, e.g. ``train.epochs 30, not 50``; empty where they are.
        remarks: what differs and does not stand in the way, e.g. ``5 runs, not 3``.
        difference: ours minus theirs in percentage points, with Welch's interval where the two are comparable.
        verdict: :data:`WITHIN` where the interval includes zero, :data:`OUTSIDE` where not, :data:`INCOMPARABLE`, or
            :data:`UNCLEAR`, with ``reason``.
    """

    row: TableRow
    column: Column
    table: PublishedTable
    theirs: PublishedValue
    differs: tuple[str, ...]
    remarks: tuple[str, ...]
    difference: Interval
    verdict: str
    reason: str = ""


@dataclass(frozen=True)
class Published:
    """A table of ours beside a publication.

    Attributes:
        publication: None where there is none of this name, and ``problem`` says so.
        beside: the cells with a number on both sides, by column and in the order of the rows.
        rows_missing, columns_missing: rows and columns of ours that the paper does not have.
        not_printed: (method, dataset) whose row and column it has, without a number for the pair.
        not_measured: (method, dataset, why) with a number in the paper and none of ours yet.
        not_here: rows that it has for our columns, and we do not.
    """

    publication: Publication | None
    beside: tuple[Beside, ...] = ()
    rows_missing: tuple[str, ...] = ()
    columns_missing: tuple[str, ...] = ()
    not_printed: tuple[tuple[str, str], ...] = ()
    not_measured: tuple[tuple[str, str, str], ...] = ()
    not_here: tuple[str, ...] = ()
    problem: str = ""
    level: float = LEVEL


def beside_published(table: Table, name: str, level: float = LEVEL) -> Published:
    """Look every cell of a table up in a publication; an unknown name is told in ``problem``, as runs outlive names."""
    try:
        publication = load_published(name)
    except UserError as error:
        return Published(None, problem=str(error))
    scores = [t for t in publication.tables if t.unit == "percent"]
    methods = dict.fromkeys(method for t in scores for method in t.rows)
    columns = {column for t in scores for column in t.columns}
    found, not_printed, not_measured = [], [], []
    for column in table.columns:
        for row in table.column(column):
            place = _find(publication, row)
            if place is not None and row.test.n:
                found.append(_beside(table, row, column, publication, *place, level))
            elif place is not None:
                not_measured.append((row.method, column.label, row.status))
            elif row.method in methods and row.dataset in columns:
                not_printed.append((row.method, column.label))
    ours = {column.dataset for column in table.columns}
    printed = [m for m in methods if any(ours & t.rows.get(m, {}).keys() for t in scores)]
    return Published(
        publication,
        tuple(found),
        rows_missing=tuple(m for m in table.results.methods if m not in methods),
        columns_missing=tuple(dict.fromkeys(c.dataset for c in table.columns if c.dataset not in columns)),
        not_printed=tuple(not_printed),
        not_measured=tuple(not_measured),
        not_here=tuple(m for m in printed if m not in table.results.methods),
        level=level,
    )


def _find(publication: Publication, row: TableRow) -> tuple[PublishedTable, PublishedValue] | None:
    """The number in our metric, else in another one; running times are no scores."""
    found = publication.find(row.method, row.dataset, row.metric)
    if found is not None:
        return found
    for table in publication.tables:
        value = table.value(row.method, row.dataset)
        if value is not None and table.unit == "percent":
            return table, value
    return None


def _beside(
    table: Table,
    row: TableRow,
    column: Column,
    publication: Publication,
    place: PublishedTable,
    theirs: PublishedValue,
    level: float,
) -> Beside:
    differs, remarks = tuple(_differs(table, row, place, publication.free)), _remarks(row, place)
    difference = welch_interval(_ours(row), _theirs(place, theirs), level)
    if differs:
        difference = replace(difference, low=None, high=None, degrees=None, reason=INCOMPARABLE)
        return Beside(row, column, place, theirs, differs, remarks, difference, INCOMPARABLE)
    if place.runs is None:
        difference = replace(difference, reason="the number of the paper's runs is not stated")
    verdict = UNCLEAR if difference.low is None else OUTSIDE if difference.excludes_zero else WITHIN
    return Beside(row, column, place, theirs, differs, remarks, difference, verdict, difference.reason)


def _ours(row: TableRow) -> Sample:
    spread = row.test.spread
    return Sample(row.test.n, 100 * (row.test.mean or 0.0), None if spread is None else 100 * spread)


def _theirs(place: PublishedTable, value: PublishedValue) -> Sample:
    """The printed number as a sample; without a stated number of runs nothing can be said of its error."""
    runs = place.runs or 1
    spread = value.spread
    if spread is not None and place.spread == "standard error":
        spread *= sqrt(runs)
    return Sample(runs, value.mean, spread)


def _remarks(row: TableRow, place: PublishedTable) -> tuple[str, ...]:
    found = []
    if place.runs is not None and row.test.n != place.runs:
        found.append(f"{row.test.n} run{'s' if row.test.n > 1 else ''}, not {place.runs}")
    if place.tuned and row.configurations == 1:
        found.append("not tuned here")
    return tuple(found)


def _differs(table: Table, row: TableRow, place: PublishedTable, free: tuple[str, ...]) -> list[str]:
    """What makes a number of ours another thing than the paper's."""
    results, made = table.results, place.made.get(row.dataset, PublishedColumn())
    metric = place.metrics[row.dataset]
    found = [f"metric {row.metric}, not {metric}"] if metric != row.metric else []
    if place.protocol and place.protocol != results.protocol:
        found.append(f"protocol {results.protocol}, not {place.protocol}")
    if in_distribution(row.split) != (made.split == "in-distribution"):
        found.append(f"split {row.split}, not {made.split}")
    ours = LAST if row.checkpoint == LAST else "best-val"
    if place.checkpoint and place.checkpoint != ours:
        found.append(f"checkpoint {ours}, not {place.checkpoint}")
    if row.oracle_selection:
        found.append("configuration selected on test scores")
    if row.oracle:
        found.append(f"oracle information ({', '.join(row.oracle)})")
    found += _data(results.dataset(row.dataset), made, free)
    entry = results.entry(row.dataset, row.method)
    axes = {path for values in entry.configurations.values() for path in values} if entry else set()
    return found + _settings(entry.settings if entry else {}, made.settings, axes, free)


def _data(ours: DatasetFacts, made: PublishedColumn, free: tuple[str, ...]) -> list[str]:
    found = []
    if made.version and not _begins(ours.version, made.version):
        found.append(f"data version {_edition(ours.version)}, not {made.version}")
    if not made.component or not ours.component:
        return found
    if ours.component != made.component:
        return [*found, f"data {ours.component}, not {made.component}"]
    return found + [f"data: {told}" for told in _unequal(ours.values, made.values, free)]


def _begins(ours: str, version: str) -> bool:
    """Whether an edition is the named one: ``ChEMBL 30, file 1a2b`` is ``ChEMBL 30`` and not ``ChEMBL 3``."""
    return ours == version or ours.startswith(f"{version},")


def _edition(version: str) -> str:
    """An edition without the digest of its file."""
    return version.partition(",")[0] or "not stated"


def _settings(ours: Mapping[str, Any], theirs: Mapping[str, Any], axes: set[str], free: tuple[str, ...]) -> list[str]:
    """Settings are compared once a training has told ours; what was tuned here is no difference."""
    if not ours or not theirs:
        return []
    expected = {path: value for path, value in theirs.items() if path not in axes}
    return _unequal(ours, expected, free)


def _unequal(ours: Mapping[str, Any], theirs: Mapping[str, Any], free: tuple[str, ...]) -> list[str]:
    """``NAME OURS, not THEIRS`` for each value that differs; one that a side lacks is the default there."""
    found = []
    for name in dict.fromkeys([*theirs, *ours]):
        if name.rpartition(".")[2] in free:
            continue
        pair = [_shown(values[name]) if name in values else "the default" for values in (ours, theirs)]
        if pair[0] != pair[1]:
            found.append(f"{name} {pair[0]}, not {pair[1]}")
    return found


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value).replace(",", ", ")
