"""Comparison of two runs, paired by cell and seed: what makes them comparable or not, and the differences. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from harness.errors import UserError, did_you_mean
from harness.results.aggregate import ResultTable, TableRow, build_table, by_method, by_value
from harness.results.rows import DatasetFacts, MethodFacts, RunResults
from harness.results.run_record import CellRecord, RunRecord
from harness.results.statistics import Interval, mean_interval
from harness.store import Store, canonical, difference

CHECKED = "protocol, settings, data, splits, metrics and rules of selection"
RowPair = tuple[TableRow, TableRow]
_DATA_FACTS = ("metric", "task", "splits", "version")


@dataclass(frozen=True)
class Side:
    """One of the two runs: its record, its store and the table of its results."""

    record: RunRecord
    store: Store
    table: ResultTable

    @cached_property
    def _cells(self) -> Mapping[tuple[Any, ...], CellRecord]:
        return {cell.coordinates: cell for cell in self.record.cells}

    @property
    def results(self) -> RunResults:
        """The run's results."""
        return self.table.results

    @property
    def name(self) -> str:
        """The run's id."""
        return self.record.id

    def cell(self, row: TableRow, seed: int) -> CellRecord | None:
        """Return the cell behind a table row, of the configuration that it shows."""
        return self._cells.get((row.dataset, row.method, row.config_id, seed))

    def stages(self, cell: CellRecord) -> dict[str, list[Mapping[str, Any]]]:
        """Return place -> preimages of the stages that a cell builds on and the store holds, inputs first."""
        stages: dict[str, list[Mapping[str, Any]]] = {}
        for key in cell.needs:
            meta = self.store.meta(key)
            if meta is not None:
                stages.setdefault(meta.place, []).append(meta.preimage)
        return stages

    def versions(self, cell: CellRecord) -> Mapping[str, str]:
        """Return the package versions that trained a cell; those of the run if the store has no record of it."""
        provenance = self.store.record(cell.train).get("provenance") or self.record.provenance
        versions: Mapping[str, str] = provenance.get("versions", {})
        return versions


def open_side(record: RunRecord, results: RunResults, store: Store, checkpoint: str | None = None) -> Side:
    """Return one side of a comparison.

    Args:
        results: the run's results as they stand in its store.
        checkpoint: ``best-val`` or ``last`` for all methods, instead of each one's own setting.
    """
    return Side(record, store, build_table(results, checkpoint))


def narrowed(side: Side, datasets: Sequence[str], methods: Sequence[str]) -> Side:
    """Return the side with only the columns and rows that match one of the patterns; all without patterns.

    Raises:
        UserError: a pattern matches nothing.
    """
    results = side.results
    columns = _matching([d.label for d in results.datasets], datasets, "column", side)
    rows = _matching(list(results.methods), methods, "row", side)
    shown = replace(
        results,
        datasets=tuple(d for d in results.datasets if d.label in columns),
        methods=tuple(m for m in results.methods if m in rows),
    )
    table = replace(
        side.table,
        results=shown,
        columns=tuple(c for c in side.table.columns if c.dataset in columns),
        rows=tuple(row for row in side.table.rows if row.dataset in columns and row.method in rows),
    )
    return Side(side.record, side.store, table)


def _matching(labels: list[str], patterns: Sequence[str], what: str, side: Side) -> set[str]:
    for pattern in patterns:
        if not any(fnmatchcase(label, pattern) for label in labels):
            raise UserError(f"'{pattern}' fits no {what} of run {side.name}{did_you_mean(pattern, labels)}")
    return {label for label in labels if not patterns or any(fnmatchcase(label, pattern) for pattern in patterns)}


@dataclass(frozen=True)
class CellPair:
    """A table cell that both runs have.

    Attributes:
        label: the column's.
        seeds: the seeds that both runs have.
        values: seed by seed the first and the second run's value as fractions, None without a value.
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
        """True if there are pairs of values and all of them are equal to the bit."""
        present = [pair for pair in self.values if None not in pair]
        return bool(present) and all(first == second for first, second in present)


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        forced: differences that make the runs not comparable; empty unless the comparison was forced.
        notes: other differences.
        missing: what only one of the runs has, one line a fact.
    """

    first: Side
    second: Side
    pairs: tuple[CellPair, ...]
    forced: tuple[str, ...]
    notes: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def identical(self) -> bool:
        """True if every pair of cells has the same values to the bit."""
        return bool(self.pairs) and all(pair.identical for pair in self.pairs)


def compare(first: Side, second: Side, *, checkpoint: str | None = None, force: bool = False) -> Comparison:
    """Pair the cells of two runs by dataset, split, method and seed, each with the configuration that it selected.

    Args:
        checkpoint: the rule that was asked for in both runs; then those of the suites do not matter.

    Raises:
        UserError: the runs share no cell; or they are not comparable, and ``force`` is False.
    """
    if first.record.id == second.record.id and first.store.root == second.store.root:
        raise UserError(f"both are run {first.name}; name two runs by their ids (`bench runs` lists them)")
    others = {_place(row): row for row in second.table.rows}
    rows = [(row, others[_place(row)]) for row in first.table.rows if _place(row) in others]
    missing = _missing(first, second, rows)
    if not rows:
        lacking = "; ".join(missing)
        raise UserError(f"runs {first.name} and {second.name} have no dataset, split and method in common: {lacking}")
    seeds = tuple(seed for seed in first.results.seeds if seed in second.results.seeds)
    if not seeds:
        ours, theirs = (", ".join(map(str, side.results.seeds)) for side in (first, second))
        raise UserError(f"the runs have no seed in common: {ours} / {theirs}; cells are paired by seed")
    forbidding = _forbidding(first, second, rows, checkpoint)
    if forbidding and not force:
        lines = "\n".join(f"  {line}" for line in forbidding)
        raise UserError(
            f"runs {first.name} and {second.name} are not comparable ({CHECKED} must agree); they differ in\n{lines}\n"
            "--force compares them all the same; --datasets and --methods leave out what differs"
        )
    labels = {(c.dataset, c.split): c.label for c in first.table.columns}
    pairs = tuple(_pair(labels[row.dataset, row.split], row, other, first, second, seeds) for row, other in rows)
    return Comparison(first, second, pairs, tuple(forbidding), tuple(_notes(first, second, rows)), tuple(missing))


def _place(row: TableRow) -> tuple[str, str, str]:
    return row.dataset, row.split, row.method


def _pair(label: str, row: TableRow, other: TableRow, first: Side, second: Side, seeds: tuple[int, ...]) -> CellPair:
    ours = dict(zip(first.results.seeds, row.test.values, strict=True))
    theirs = dict(zip(second.results.seeds, other.test.values, strict=True))
    values = tuple((ours[seed], theirs[seed]) for seed in seeds)
    differences = [None if a is None or b is None else b - a for a, b in values]
    return CellPair(label, row, other, seeds, values, mean_interval(differences).times(100))


def _missing(first: Side, second: Side, rows: Sequence[RowPair]) -> list[str]:
    """List what only one run has: columns, rows, seeds, and single cells of columns and rows that both have."""
    lines = []
    for side, other in ((first, second), (second, first)):
        labels, other_labels = ([d.label for d in run.results.datasets] for run in (side, other))
        paired = {_place(row) for pair in rows for row in pair}
        single = [row for row in side.table.rows if _place(row) not in paired]
        single = [row for row in single if row.dataset in other_labels and row.method in other.results.methods]
        lacking: dict[str, list[Any]] = {
            "datasets": [label for label in labels if label not in other_labels],
            "methods": [method for method in side.results.methods if method not in other.results.methods],
            "seeds": [seed for seed in side.results.seeds if seed not in other.results.seeds],
            "cells": [f"{row.method} on {row.dataset} [{row.split}]" for row in single],
        }
        parts = [f"{what} {', '.join(map(str, names))}" for what, names in lacking.items() if names]
        if parts:
            lines.append(f"only in {side.name}: {'; '.join(parts)}")
    return lines


def differences(first: Mapping[str, Any], second: Mapping[str, Any], missing: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield name and both values where two mappings differ; ``missing`` for a value that one does not have."""
    for name in dict.fromkeys([*first, *second]):
        ours, theirs = first.get(name, missing), second.get(name, missing)
        if ours != theirs:
            yield name, ours, theirs


def unequal(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield name and both values as texts where two mappings differ; a missing value is the default."""
    ours, theirs = ({name: _shown(value) for name, value in values.items()} for values in (first, second))
    return differences(ours, theirs, "the default")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value or "nothing"
    return "nothing" if value is None else canonical(value).replace(",", ", ")


def _differs(what: str, first: Any, second: Any) -> list[str]:
    """Return ``what: FIRST / SECOND`` if the two differ."""
    return _lines({what: first}, {what: second})


def _lines(first: Mapping[str, Any], second: Mapping[str, Any], without: Iterable[str] = ()) -> list[str]:
    return [f"{name}: {ours} / {theirs}" for name, ours, theirs in unequal(first, second) if name not in without]


def _forbidding(first: Side, second: Side, rows: Sequence[RowPair], checkpoint: str | None) -> list[str]:
    """List the differences of the shared cells that forbid to compare their numbers."""
    lines = _differs("protocol", first.results.protocol, second.results.protocol)
    for label in dict.fromkeys(row.dataset for row, _ in rows):
        lines += _of_data(first.results.dataset(label), second.results.dataset(label))
    of_methods = []
    for row, _ in rows:
        ours, theirs = first.results.entry(row.dataset, row.method), second.results.entry(row.dataset, row.method)
        assert ours is not None
        assert theirs is not None
        splits = first.results.validation_split(ours), second.results.validation_split(theirs)
        changes = _differs("validation split", *splits)
        changes += _differs("selection", ours.select.config, theirs.select.config)
        if checkpoint is None:
            changes += _differs("checkpoint", ours.select.checkpoint, theirs.select.checkpoint)
        if ours.settings and theirs.settings:
            changes += _lines(ours.settings, theirs.settings, without=tuned_paths(ours) | tuned_paths(theirs))
        of_methods += [(line, row) for line in changes]
    return lines + _grouped(of_methods, rows)


def tuned_paths(entry: MethodFacts) -> set[str]:
    """Return the paths of the settings that a method tunes."""
    return {path for values in entry.configurations.values() for path in values}


def _of_data(first: DatasetFacts, second: DatasetFacts) -> list[str]:
    """List what forbids to compare numbers on two datasets of one name."""
    lines = []
    for name in _DATA_FACTS:
        lines += _differs(f"{name} of {first.label}", getattr(first, name), getattr(second, name))
    prints = [dataset.fingerprint[:12] or "not built" for dataset in (first, second)]
    if prints[0] != prints[1]:
        why = _differs("component", first.component, second.component)
        why += _lines(first.values, second.values) + _differs("variant", first.variant, second.variant)
        lines.append(f"data of {first.label}: {' / '.join(prints)}" + (f" ({'; '.join(why)})" if why else ""))
    return lines


def _grouped(lines: Iterable[tuple[str, TableRow]], rows: Sequence[RowPair]) -> list[str]:
    """Return each line once, with the cells that it is about unless these are all."""
    every = [row for row, _ in rows]
    grouped = by_value((row, line) for line, row in lines)
    return [line if len(about) == len(rows) else f"{line} ({_cells(about, every)})" for line, about in grouped.items()]


def _cells(about: Iterable[TableRow], rows: Iterable[TableRow]) -> str:
    return "; ".join(name for name, _ in by_method(((row, "") for row in about), rows))


def _notes(first: Side, second: Side, rows: Sequence[RowPair]) -> list[str]:
    """List the differences that do not forbid a comparison, such as package versions and changed sources."""
    chosen = []
    for row, other in rows:
        lines = _differs("configuration", row.config_id, other.config_id)
        lines += _differs("environments", row.environments, other.environments)
        lines += _differs("number of configurations", row.configurations, other.configurations)
        chosen += [(line, row) for line in lines]
    cells = [(row, _cell_pair(first, second, row, other)) for row, other in rows]
    shared = [(row, pair) for row, pair in cells if pair is not None]
    return [
        *_differs("overrides", " ".join(first.results.overrides), " ".join(second.results.overrides)),
        *_grouped(chosen, rows),
        *_grouped(_changed_stages(first, second, shared), rows),
        *_changed_versions(first, second, [pair for _, pair in shared]),
        *_changed_machines(first.record.provenance, second.record.provenance),
    ]


def _cell_pair(first: Side, second: Side, row: TableRow, other: TableRow) -> tuple[CellRecord, CellRecord] | None:
    """Return the cells of the first seed of which both sides have one."""
    for seed in first.results.seeds:
        ours, theirs = first.cell(row, seed), second.cell(other, seed)
        if ours and theirs:
            return ours, theirs
    return None


def _changed_stages(
    first: Side, second: Side, cells: Sequence[tuple[TableRow, tuple[CellRecord, CellRecord]]]
) -> Iterable[tuple[str, TableRow]]:
    """Return (line, row) for the sources and values of components that differ in the stages behind a cell."""
    lines: dict[tuple[str, ...], tuple[str, TableRow]] = {}
    for row, pair in cells:
        stages, other_stages = first.stages(pair[0]), second.stages(pair[1])
        for place in dict.fromkeys([*stages, *other_stages]):
            ours, theirs = stages.get(place, []), other_stages.get(place, [])
            changes = [
                line.replace(" -> ", " / ")
                for preimage, other in zip(ours, theirs, strict=False)
                for line in difference(_components(preimage), _components(other))
            ]
            if len(ours) != len(theirs):
                changes.append(f"stages of {place}: {len(ours)} / {len(theirs)}")
            lines |= {(line, *_place(row)): (line, row) for line in changes}
    return lines.values()


def _components(preimage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the components of a preimage and the version of its format; settings and data are compared elsewhere."""
    parts = {name: value for name, value in preimage.items() if isinstance(value, Mapping) and "kind" in value}
    parts |= {name: {**parts[name], "params": {}} for name in ("backbone", "dataset") if name in parts}
    return {**parts, "version of the harness's stages": preimage.get("protocol")}


def _changed_versions(first: Side, second: Side, cells: Iterable[tuple[CellRecord, CellRecord]]) -> list[str]:
    """List the packages of which the trainings of the two runs used other versions."""
    versions: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})
    for pair in cells:
        for side, cell, known in zip((first, second), pair, versions, strict=True):
            for package, version in side.versions(cell).items():
                known.setdefault(package, set()).add(version)
    lines = []
    for package in dict.fromkeys([*versions[0], *versions[1]]):
        lines += _differs(package, *(" and ".join(sorted(known.get(package, ()))) for known in versions))
    return lines


def _changed_machines(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    lines = []
    for what in ("cpu", "device", "platform"):
        lines += _differs(what, *(str(provenance.get(what) or "") for provenance in (first, second)))
    commits = [provenance.get("repository") or {} for provenance in (first, second)]
    shown = [f"{c.get('commit', '')[:12]}{' with changes' if c.get('changed') else ''}" for c in commits]
    return lines + _differs("commit", *shown)
