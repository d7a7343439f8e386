"""Pair the cells of two runs and take their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import UserError
from harness.report.table import TableRow
from harness.results.compare.differing import Differing, RowPair, differing
from harness.results.compare.sides import Side
from harness.results.intervals import Interval, mean_interval

CHECKED = "protocol, settings, data, splits, metrics and rules of selection"


@dataclass(frozen=True)
class Pair:
    """A cell that both runs have.

    Attributes:
        label: the column's.
        seeds: those that both runs have.
        values: seed by seed the first and the second run's value as fractions, None where it has none.
        difference: second minus first in percentage points, over the seeds where both have a value.
    """

    label: str
    first: TableRow
    second: TableRow
    seeds: tuple[int, ...]
    values: tuple[tuple[float | None, float | None], ...]
    difference: Interval

    @property
    def identical(self) -> bool:
        """Whether all pairs of values are equal to the bit, and there is one."""
        present = [pair for pair in self.values if None not in pair]
        return bool(present) and all(first == second for first, second in present)


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        forced: what forbids to compare them; not empty only where that was forced.
        notes: what else they differ in.
        missing: what only one of them has, one line a fact.
    """

    first: Side
    second: Side
    pairs: tuple[Pair, ...]
    forced: tuple[str, ...]
    notes: tuple[str, ...]
    missing: tuple[str, ...]


def compare(first: Side, second: Side, *, checkpoint: str | None = None, force: bool = False) -> Comparison:
    """Pair the cells of two runs by dataset, split, method and seed, each with the configuration that it selected.

    Raises:
        UserError: the runs share no cell; or they differ in what a comparison rests on, and nothing is forced.
    """
    if first.record.id == second.record.id and first.store.root == second.store.root:
        raise UserError(f"both are run {first.name}; name two runs by their ids (`bench runs` lists them)")
    others = {_place(row): row for row in second.table.rows}
    rows = [(row, others[_place(row)]) for row in first.table.rows if _place(row) in others]
    seeds = tuple(seed for seed in first.results.seeds if seed in second.results.seeds)
    found = differing(first, second, rows, checkpoint)
    _require(first, second, rows, seeds, found, force)
    labels = {(c.dataset, c.split): c.label for c in first.table.columns}
    pairs = tuple(_pair(labels[row.dataset, row.split], row, other, first, second, seeds) for row, other in rows)
    return Comparison(first, second, pairs, found.forbidding, found.notes, tuple(_missing(first, second, rows)))


def _place(row: TableRow) -> tuple[str, str, str]:
    return row.dataset, row.split, row.method


def _require(
    first: Side, second: Side, rows: Sequence[RowPair], seeds: Sequence[int], found: Differing, force: bool
) -> None:
    if not rows:
        told = "; ".join(_missing(first, second, rows))
        raise UserError(f"runs {first.name} and {second.name} have no dataset, split and method in common: {told}")
    if not seeds:
        shown = [", ".join(map(str, side.results.seeds)) for side in (first, second)]
        raise UserError(f"the runs have no seed in common: {shown[0]} / {shown[1]}; cells are paired by seed")
    if found.forbidding and not force:
        lines = "\n".join(f"  {line}" for line in found.forbidding)
        raise UserError(
            f"runs {first.name} and {second.name} are not comparable ({CHECKED} must agree); they differ in\n{lines}\n"
            "--force compares them all the same; --datasets and --methods leave out what differs"
        )


def _pair(label: str, row: TableRow, other: TableRow, first: Side, second: Side, seeds: tuple[int, ...]) -> Pair:
    one = dict(zip(first.results.seeds, row.test.values, strict=True))
    two = dict(zip(second.results.seeds, other.test.values, strict=True))
    values = tuple((one[seed], two[seed]) for seed in seeds)
    differences = [None if a is None or b is None else b - a for a, b in values]
    return Pair(label, row, other, seeds, values, mean_interval(differences).times(100))


def _missing(first: Side, second: Side, rows: Sequence[RowPair]) -> list[str]:
    """What only one run has: columns, rows, seeds, and single cells of what both have."""
    lines = []
    for side, other in ((first, second), (second, first)):
        labels, known_labels = ([d.label for d in one.results.datasets] for one in (side, other))
        parts = _lacking("datasets", labels, known_labels)
        parts += _lacking("methods", side.results.methods, other.results.methods)
        parts += _lacking("seeds", side.results.seeds, other.results.seeds)
        paired = {_place(row) for pair in rows for row in pair}
        single = [row for row in side.table.rows if _place(row) not in paired]
        single = [row for row in single if row.dataset in known_labels and row.method in other.results.methods]
        parts += _lacking("cells", [f"{row.method} on {row.dataset} [{row.split}]" for row in single], [])
        if parts:
            lines.append(f"only in {side.name}: {'; '.join(parts)}")
    return lines


def _lacking(what: str, ours: Sequence[object], theirs: Sequence[object]) -> list[str]:
    found = [str(item) for item in ours if item not in theirs]
    return [f"{what} {', '.join(found)}"] if found else []


def unchanged(pairs: Sequence[Pair]) -> bool:
    """Whether every pair of runs' cells has the same values to the bit."""
    return bool(pairs) and all(pair.identical for pair in pairs)
