"""Comparison of two runs, paired by cell and seed: what makes them comparable or not, and the differences. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from harness.errors import UserError, did_you_mean, listed
from harness.results.aggregate import ResultTable, TableRow, by_value, names_of
from harness.results.rows import DatasetFacts, MethodFacts, RunResults
from harness.results.run_record import CellRecord, RunRecord
from harness.results.statistics import Interval, mean_interval
from harness.results.summary import paired_difference
from harness.store import Store, canonical, difference

RowPair = tuple[TableRow, TableRow]


@dataclass(frozen=True)
class Side:
    """One of the two runs: its record, its store and the table of its results."""

    record: RunRecord
    store: Store
    table: ResultTable

    @property
    def results(self) -> RunResults:
        """The run's results."""
        return self.table.results

    def cell(self, row: TableRow) -> CellRecord | None:
        """Return the first cell behind a table row, of the configuration that it shows."""
        place = row.dataset, row.method, row.config_id
        return next((cell for cell in self.record.cells if cell.coordinates[:3] == place), None)


def narrowed(results: RunResults, datasets: Sequence[str], methods: Sequence[str]) -> RunResults:
    """Return the results with only the datasets and methods that fit one of the globs; all without globs.

    A glob that equals a label takes that label literally.

    Raises:
        UserError: a pattern matches nothing.
    """
    columns = _matching([d.label for d in results.datasets], datasets, "column", results.run)
    rows = _matching(list(results.methods), methods, "row", results.run)
    return results.of(columns, rows)


def _matching(labels: list[str], patterns: Sequence[str], what: str, run: str) -> set[str]:
    taken = set() if patterns else set(labels)
    for pattern in patterns:
        found = [label for label in labels if label == pattern] or [x for x in labels if fnmatchcase(x, pattern)]
        if not found:
            raise UserError(f"'{pattern}' fits no {what} of run {run}{did_you_mean(pattern, labels)}")
        taken.update(found)
    return taken


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
        """True if there are values, and every seed has the same on both sides to the bit, or none on either."""
        return self.difference.n > 0 and all(first == second for first, second in self.values)


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        forced: differences that make the runs not comparable; empty unless the comparison was forced.
        notes: other differences.
        missing: what only one of the runs has, one line a run.
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
        raise UserError(f"both are run {first.record.id}; name two runs by their ids (`bench runs` lists them)")
    others = {(row.dataset, row.split, row.method): row for row in second.table.rows}
    places = [(row, (row.dataset, row.split, row.method)) for row in first.table.rows]
    rows = [(row, others[place]) for row, place in places if place in others]
    missing = [*_missing(first, second), *_missing(second, first)]
    if not rows or not {*first.results.seeds} & {*second.results.seeds}:
        what = "seed" if rows else "dataset, split and method"
        raise UserError(f"runs {first.record.id} and {second.record.id} have no {what} in common: {'; '.join(missing)}")
    forbidding = _forbidding(first, second, rows, checkpoint)
    if forbidding and not force:
        lines = "\n".join(f"  {line}" for line in forbidding)
        raise UserError(
            f"runs {first.record.id} and {second.record.id} are not comparable (protocol, settings, data, splits, "
            f"metrics and rules of selection must agree); they differ in\n{lines}\n"
            "--force compares them all the same; --datasets and --methods leave out what differs"
        )
    pairs = tuple(_pair(row, other, first, second) for row, other in rows)
    return Comparison(first, second, pairs, tuple(forbidding), tuple(_notes(first, second, rows)), tuple(missing))


def _pair(row: TableRow, other: TableRow, first: Side, second: Side) -> CellPair:
    label = next(c.label for c in first.table.columns if (c.dataset, c.split) == (row.dataset, row.split))
    values = paired(first.results, row, second.results, other)
    ours, theirs = zip(*values.values(), strict=True)
    difference = mean_interval(paired_difference(theirs, ours).values).times(100)
    return CellPair(label, row, other, tuple(values), tuple(values.values()), difference)


def paired(
    first: RunResults, row: TableRow, second: RunResults, other: TableRow
) -> dict[int, tuple[float | None, float | None]]:
    """Return seed -> the test values of two rows, for the seeds that both runs have."""
    ours, theirs = (dict(zip(run.seeds, one.test.values, strict=True)) for run, one in ((first, row), (second, other)))
    return {seed: (value, theirs[seed]) for seed, value in ours.items() if seed in theirs}


def _missing(side: Side, other: Side) -> list[str]:
    """Name the datasets, methods, cells and seeds that only one side has, in one line or none."""
    ours, theirs = side.results, other.results
    labels = [dataset.label for dataset in theirs.datasets]
    shared = [one for one in ours.entries if one.dataset in labels and one.method in theirs.methods]
    only = {
        "datasets": [one.label for one in ours.datasets if one.label not in labels],
        "methods": [method for method in ours.methods if method not in theirs.methods],
        "cells": [f"{one.method} on {one.dataset}" for one in shared if not theirs.entry(one.dataset, one.method)],
        "seeds": [str(seed) for seed in ours.seeds if seed not in theirs.seeds],
    }
    parts = [f"{what} {listed(names)}" for what, names in only.items() if names]
    return [f"only in {side.record.id}: {'; '.join(parts)}"] if parts else []


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
    if value in (None, ""):
        return "nothing"
    return value if isinstance(value, str) else canonical(value).replace(",", ", ")


def _lines(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return ``NAME: FIRST / SECOND`` for each value that differs."""
    return [f"{name}: {ours} / {theirs}" for name, ours, theirs in unequal(first, second)]


def tuned_paths(entry: MethodFacts) -> set[str]:
    """Return the paths of the settings that a method tunes."""
    return {path for values in entry.configurations.values() for path in values}


def _forbidding(first: Side, second: Side, rows: Sequence[RowPair], checkpoint: str | None) -> list[str]:
    """List the differences of the shared cells that forbid to compare their numbers."""
    lines = _lines({"protocol": first.results.protocol}, {"protocol": second.results.protocol})
    for label in dict.fromkeys(row.dataset for row, _ in rows):
        lines += _of_data(first.results.dataset(label), second.results.dataset(label))
    of_rows = []
    for row, _ in rows:
        ours, theirs = (side.results.entry(row.dataset, row.method) for side in (first, second))
        assert ours is not None
        assert theirs is not None
        of_rows += [(line, row) for line in _of_terms(first.results, ours, second.results, theirs, checkpoint)]
    return lines + _grouped(of_rows, rows)


def not_comparable(
    first: RunResults, ours: MethodFacts, second: RunResults, theirs: MethodFacts, checkpoint: str | None = None
) -> list[str]:
    """List what forbids to compare the numbers of two rows: protocol, data, settings and rules of selection.

    Args:
        ours, theirs: the rows, each on a dataset of its run; names of rows and datasets may differ.
        checkpoint: the rule that both are taken under; None: each one's own, which must agree.
    """
    lines = _lines({"protocol": first.protocol}, {"protocol": second.protocol})
    lines += _of_data(first.dataset(ours.dataset), second.dataset(theirs.dataset))
    if not ours.settings:
        lines.append("settings unknown: no cell of the row has been trained")
    one_sided = sorted(tuned_paths(ours) ^ tuned_paths(theirs))
    lines += [f"{path}: tuned on one side alone" for path in one_sided if path.startswith(("train.", "model."))]
    return lines + _of_terms(first, ours, second, theirs, checkpoint)


def _of_terms(
    first: RunResults, ours: MethodFacts, second: RunResults, theirs: MethodFacts, checkpoint: str | None
) -> list[str]:
    """List the differences of two rows in settings that neither tunes, and in the rules of selection."""
    tuned = tuned_paths(ours) | tuned_paths(theirs)
    lines = _lines(_rules(first, ours, checkpoint), _rules(second, theirs, checkpoint))
    if ours.settings and theirs.settings:  # known only once a cell has been trained
        lines += _lines(*({p: v for p, v in e.settings.items() if p not in tuned} for e in (ours, theirs)))
    return lines


def _rules(results: RunResults, entry: MethodFacts, checkpoint: str | None) -> dict[str, str]:
    """Return the rules by which a row was selected."""
    facts = {"validation split": results.validation_split(entry), "selection": entry.select.config}
    return facts if checkpoint else {**facts, "checkpoint": entry.select.checkpoint}


def _of_data(first: DatasetFacts, second: DatasetFacts) -> list[str]:
    """List what forbids to compare numbers on two datasets of one name."""
    ours, theirs = (
        {f"{name} of {first.label}": getattr(facts, name) for name in ("metric", "task", "splits", "version")}
        for facts in (first, second)
    )
    lines = _lines(ours, theirs)
    prints = [dataset.fingerprint[:12] or "not built" for dataset in (first, second)]
    if prints[0] != prints[1]:
        made = ({"component": d.component, **d.values, "variant": d.variant} for d in (first, second))
        why = "; ".join(_lines(*made))
        lines.append(f"data of {first.label}: {' / '.join(prints)}" + (f" ({why})" if why else ""))
    return lines


def _grouped(lines: Iterable[tuple[str, TableRow]], rows: Sequence[RowPair]) -> list[str]:
    """Return each line once, with the cells that it is about unless these are all."""
    every = [row for row, _ in rows]
    told = []
    for line, about in by_value((row, line) for line, row in lines).items():
        told.append(line if len(about) == len(rows) else f"{line} ({'; '.join(names_of(about, every))})")
    return told


def _notes(first: Side, second: Side, rows: Sequence[RowPair]) -> list[str]:
    """List the differences that do not forbid a comparison, such as package versions and changed sources."""
    notes: list[tuple[str, TableRow]] = []
    versions: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for row, other in rows:
        chosen = (
            {
                "configuration": one.config_id,
                "environments": one.environments,
                "number of configurations": one.configurations,
            }
            for one in (row, other)
        )
        changes = _lines(*chosen)
        ours, theirs = first.cell(row), second.cell(other)
        if ours is not None and theirs is not None:
            parts = _parts(first.store, ours), _parts(second.store, theirs)
            changes += [line.replace(" -> ", " / ") for line in difference(*parts)]
            for side, cell, known in zip((first, second), (ours, theirs), versions, strict=True):
                provenance = side.store.record(cell.train).get("provenance") or side.record.provenance
                known.update(provenance.get("versions", {}))
        notes += [(line, row) for line in changes]
    return [
        *_lines(*({"overrides": " ".join(side.results.overrides)} for side in (first, second))),
        *_grouped(notes, rows),
        *_lines(*({**dict.fromkeys([*versions[0], *versions[1]]), **known} for known in versions)),
        *_lines(_machine(first.record.provenance), _machine(second.record.provenance)),
    ]


def _parts(store: Store, cell: CellRecord) -> dict[str, Any]:
    """Return the components of a cell's stages and the version of their format.

    Values of network and data are left out, as they are compared elsewhere.
    """
    found: dict[str, list[Any]] = {}
    for meta in map(store.meta, cell.needs):
        for component in components(meta.preimage if meta is not None else {}):
            kept = {**component, "params": {}} if component["kind"] in ("backbone", "dataset") else component
            if kept not in found.setdefault(component["kind"], []):
                found[component["kind"]].append(kept)
    train = store.meta(cell.train)
    version = {"version of the harness's stages": None if train is None else train.preimage.get("protocol")}
    return {**version, **{kind: parts[0] if len(parts) == 1 else parts for kind, parts in found.items()}}


def components(preimage: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every component that a key's preimage names: mappings with ``kind``, ``name`` and ``source``."""
    if isinstance(preimage, Mapping):
        if {"kind", "name", "source"} <= preimage.keys():
            yield preimage
        for value in preimage.values():
            yield from components(value)
    elif isinstance(preimage, (list, tuple)):
        for value in preimage:
            yield from components(value)


def _machine(provenance: Mapping[str, Any]) -> dict[str, str]:
    commit = provenance.get("repository") or {}
    changed = " with changes" if commit.get("changed") else ""
    facts = {what: str(provenance.get(what) or "") for what in ("cpu", "device", "platform")}
    return {**facts, "commit": f"{commit.get('commit', '')[:12]}{changed}"}
