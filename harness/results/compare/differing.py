"""What two runs differ in: what forbids to compare their numbers, and what a reader should know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.report.table import TableRow
from harness.results.compare.sides import Side
from harness.results.rows import DatasetFacts, MethodFacts
from harness.store import canonical, difference

RowPair = tuple[TableRow, TableRow]
ABSENT = "the default"


@dataclass(frozen=True)
class Differing:
    """One line a fact, the first run's value before the second's.

    Attributes:
        forbidding: protocols, settings, data, splits, metrics and rules of selection.
        notes: anything else, such as versions of packages and changed sources.
    """

    forbidding: tuple[str, ...]
    notes: tuple[str, ...]


def differing(first: Side, second: Side, pairs: Sequence[RowPair], checkpoint: str | None = None) -> Differing:
    """Compare the circumstances of the cells that both runs have.

    Args:
        checkpoint: the rule that was asked for in both runs; then those of the suites do not matter.
    """
    labels = list(dict.fromkeys(row.dataset for row, _ in pairs))
    forbidding = _told("protocol", first.results.protocol, second.results.protocol)
    for label in labels:
        forbidding += _data(first.results.dataset(label), second.results.dataset(label))
    forbidding += _grouped(_methods(first, second, pairs, checkpoint), pairs)
    notes = [
        *_overrides(first, second),
        *_grouped(_chosen(pairs), pairs),
        *_sources(first, second, pairs),
        *_versions(first, second, pairs),
        *_machines(first, second),
    ]
    return Differing(tuple(forbidding), tuple(notes))


def _told(what: str, first: Any, second: Any) -> list[str]:
    """``what: FIRST / SECOND`` where the two differ."""
    pair = _shown(first), _shown(second)
    return [f"{what}: {pair[0]} / {pair[1]}"] if pair[0] != pair[1] else []


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value or "nothing"
    return "nothing" if value is None else canonical(value).replace(",", ", ")


def _data(first: DatasetFacts, second: DatasetFacts) -> list[str]:
    """What forbids to compare numbers on two datasets of one name."""
    found = []
    for what, one, other in (
        ("metric", first.metric, second.metric),
        ("task", first.task, second.task),
        ("splits", dict(first.splits), dict(second.splits)),
        ("version", first.version, second.version),
        ("data", first.fingerprint[:12] or "not built", second.fingerprint[:12] or "not built"),
    ):
        found += _told(f"{what} of {first.label}", one, other)
    if any(line.startswith("data of") for line in found):
        found[-1] += _why(first, second)
    return found


def _why(first: DatasetFacts, second: DatasetFacts) -> str:
    """What the two datasets were made with, where that differs."""
    lines = _told("component", first.component, second.component)
    lines += [line for name, *pair in _values(first.values, second.values) for line in _told(name, *pair)]
    lines += _told("variant", first.variant, second.variant)
    return f" ({'; '.join(lines)})" if lines else ""


def _values(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterable[tuple[str, Any, Any]]:
    for name in dict.fromkeys([*first, *second]):
        yield name, first.get(name, ABSENT), second.get(name, ABSENT)


def _methods(first: Side, second: Side, pairs: Sequence[RowPair], checkpoint: str | None) -> list[tuple[str, TableRow]]:
    """(line, row) for each setting or rule in which a cell differs."""
    found = []
    for row, _ in pairs:
        one, two = first.results.entry(row.dataset, row.method), second.results.entry(row.dataset, row.method)
        assert one is not None
        assert two is not None
        lines = _told("validation split", first.results.validation_split(one), second.results.validation_split(two))
        lines += _told("selection", one.select.config, two.select.config)
        if checkpoint is None:
            lines += _told("checkpoint", one.select.checkpoint, two.select.checkpoint)
        if one.settings and two.settings:
            axes = _axes(one) | _axes(two)
            pairs_of = _values(one.settings, two.settings)
            lines += [line for name, *pair in pairs_of if name not in axes for line in _told(name, *pair)]
        found += [(line, row) for line in lines]
    return found


def _axes(entry: MethodFacts) -> set[str]:
    return {path for values in entry.configurations.values() for path in values}


def _grouped(lines: Iterable[tuple[str, TableRow]], pairs: Sequence[RowPair]) -> list[str]:
    """Each line once, with the cells it is about where these are not all."""
    by_line: dict[str, list[TableRow]] = {}
    for line, row in lines:
        by_line.setdefault(line, []).append(row)
    return [line if len(rows) == len(pairs) else f"{line} ({_cells(rows, pairs)})" for line, rows in by_line.items()]


def _cells(rows: Sequence[TableRow], pairs: Sequence[RowPair]) -> str:
    """``METHOD, METHOD``, or ``METHOD on DATASET`` where it is not the case on all of the method's datasets."""
    everywhere: dict[str, set[str]] = {}
    for row, _ in pairs:
        everywhere.setdefault(row.method, set()).add(row.dataset)
    here: dict[str, set[str]] = {}
    for row in rows:
        here.setdefault(row.method, set()).add(row.dataset)
    parts = []
    for method, datasets in here.items():
        parts += [method] if datasets == everywhere[method] else [f"{method} on {d}" for d in sorted(datasets)]
    return "; ".join(parts)


def _overrides(first: Side, second: Side) -> list[str]:
    return _told("overrides", " ".join(first.results.overrides), " ".join(second.results.overrides))


def _chosen(pairs: Sequence[RowPair]) -> list[tuple[str, TableRow]]:
    """(line, row) where configuration or environments differ."""
    found = []
    for row, other in pairs:
        lines = _told("configuration", row.config_id, other.config_id)
        lines += _told("environments", row.environments, other.environments)
        lines += _told("number of configurations", row.configurations, other.configurations)
        found += [(line, row) for line in lines]
    return found


def _sources(first: Side, second: Side, pairs: Sequence[RowPair]) -> list[str]:
    """Sources and values of the components that differ, by the stages behind the first cell that both sides have."""
    found = []
    for row, other in pairs:
        cells = _cell_pair(first, second, row, other)
        if cells is None:
            continue
        stages = _by_place(first.made(cells[0])), _by_place(second.made(cells[1]))
        for place in dict.fromkeys([*stages[0], *stages[1]]):
            ours, theirs = (side.get(place, []) for side in stages)
            for one, two in zip(ours, theirs, strict=False):
                found += [(line.replace(" -> ", " / "), row) for line in difference(_parts(one), _parts(two))]
            if len(ours) != len(theirs):
                found.append((f"stages of {place}: {len(ours)} / {len(theirs)}", row))
    once = {(line, row.dataset, row.split, row.method): (line, row) for line, row in found}
    return _grouped(once.values(), pairs)


def _cell_pair(first: Side, second: Side, row: TableRow, other: TableRow) -> tuple[Any, Any] | None:
    for seed in first.results.seeds:
        cells = first.cell(row, seed), second.cell(other, seed)
        if all(cells):
            return cells
    return None


def _by_place(made: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for place, what in made:
        found.setdefault(place, []).append(what)
    return found


def _parts(made: Mapping[str, Any]) -> dict[str, Any]:
    """The components of a preimage and the version of its format; settings and data are told elsewhere."""
    parts = {name: value for name, value in made.items() if isinstance(value, Mapping) and "kind" in value}
    backbone = parts.get("backbone")
    if backbone is not None:
        parts["backbone"] = {**backbone, "params": {}}
    dataset = parts.get("dataset")
    if dataset is not None:
        parts["dataset"] = {**dataset, "params": {}}
    return {**parts, "version of the harness's stages": made.get("protocol")}


def _versions(first: Side, second: Side, pairs: Sequence[RowPair]) -> list[str]:
    """Packages of which the two runs' trainings used other versions."""
    found: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})
    for row, other in pairs:
        cells = _cell_pair(first, second, row, other)
        for side, cell, known in zip((first, second), cells or (), found, strict=False):
            for package, version in side.versions(cell).items():
                known.setdefault(package, set()).add(version)
    lines = []
    for package in dict.fromkeys([*found[0], *found[1]]):
        lines += _told(package, *(" and ".join(sorted(known.get(package, ()))) for known in found))
    return lines


def _machines(first: Side, second: Side) -> list[str]:
    pair = first.record.provenance, second.record.provenance
    lines = []
    for what in ("cpu", "device", "platform"):
        lines += _told(what, *(str(provenance.get(what) or "") for provenance in pair))
    commits = [(provenance.get("repository") or {}) for provenance in pair]
    shown = [f"{c.get('commit', '')[:12]}{' with changes' if c.get('changed') else ''}" for c in commits]
    return lines + _told("commit", *shown)
