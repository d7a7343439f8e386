"""The trainings that a page shows: cost, settings, learning curves, and why they failed; and the cost of all stages."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from harness.errors import BenchError
from harness.report.table import Text, TextTable
from harness.results.rows import ResultRow, RunResults
from harness.results.run_record import CellRecord, RunRecord
from harness.safe_io import size_text
from harness.store import STAGE_KINDS, Store

BUDGET = 450_000
"""Most numbers of all curves together, as long as no curve falls below the least: under two megabytes in the page."""
SERIES = 4
"""Curves per training that the budget assumes."""
LEAST, MOST = 16, 200
"""Fewest and most points of one curve."""
Place = tuple[str, str, str, int]
"""Dataset, method, configuration, seed."""


class Pool:
    """Values that the page keeps once and refers to by number."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, item: Hashable) -> int:
        """Return the number of a value."""
        if item not in self._numbers:
            self._numbers[item] = len(self.items)
            self.items.append(item)
        return self._numbers[item]


class Trainings:
    """The trainings of a run that are asked for, numbered in that order.

    Attributes:
        facts: one mapping for each, as the page's script reads it; ``settings`` is a number in the pool of settings,
            which are pairs of name and value.
        components: (kind, name, digest of the source) of the components that took part.
    """

    def __init__(
        self, record: RunRecord, results: RunResults, store: Store, costs: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._store, self._costs = store, costs
        self._cells = {cell.coordinates: cell for cell in record.cells}
        self._rows: dict[Place, ResultRow] = {}
        for row in results.rows:
            self._rows.setdefault(row.coordinates, row)
        self._numbers: dict[Place, int] = {}
        self._preimage = cache(self._read_preimage)
        self.facts: list[dict[str, Any]] = []
        self.settings = Pool()
        self.components: set[tuple[str, str, str]] = set()

    def number(self, place: Place) -> int | None:
        """Return the number of a training; None if the run has no such cell."""
        cell = self._cells.get(place)
        if cell is None:
            return None
        if place not in self._numbers:
            self._numbers[place] = len(self.facts)
            self.facts.append(self._describe(cell, self._rows.get(place)))
        return self._numbers[place]

    def _describe(self, cell: CellRecord, row: ResultRow | None) -> dict[str, Any]:
        facts: dict[str, Any] = {"cell": cell.id, "stages": self._seconds(cell)}
        settings = self._settings(cell)
        if settings:
            facts["settings"] = self.settings.number(tuple(settings.items()))
        if row is not None:
            texts = {
                "seconds": row.seconds and round(row.seconds, 2),
                "memory": row.peak_memory and size_text(row.peak_memory),
                "traceback": row.traceback,
            }
            facts |= {name: value for name, value in texts.items() if value}
        return facts

    def _seconds(self, cell: CellRecord) -> dict[str, float]:
        """Sum the seconds of all stages that the cell builds on, by kind."""
        sums: dict[str, float] = {}
        for key, title in cell.needs.items():
            seconds = self._costs.get(key, {}).get("seconds")
            if isinstance(seconds, (int, float)):
                sums[kind_of(title)] = round(sums.get(kind_of(title), 0.0) + seconds, 2)
        return sums

    def _settings(self, cell: CellRecord) -> dict[str, str]:
        """Return the settings of all stages that the cell builds on; empty unless its training is in the store."""
        settings: dict[str, str] = {}
        for key in cell.needs if self._preimage(cell.train) else ():
            preimage = self._preimage(key)
            for component in components(preimage):
                self.components.add(tuple(str(component[name]) for name in ("kind", "name", "source")))  # type: ignore[arg-type]
                settings[component["kind"]] = component["name"]
                settings |= _texts(component["kind"], component.get("params"))
            for part in ("model", "train"):
                settings |= _texts(part, preimage.get(part))
        return settings

    def _read_preimage(self, key: str) -> Mapping[str, Any]:
        try:
            meta = self._store.meta(key)
        except BenchError:
            return {}
        return meta.preimage if meta is not None and isinstance(meta.preimage, Mapping) else {}

    def curves(self) -> dict[str, Any]:
        """Return the learning curves by number; also adds to ``facts`` what the artifacts say of their trainings."""
        limit = points(len(self._numbers))
        by_number: dict[str, Any] = {}
        for place, number in self._numbers.items():
            drawn = self._read(self._cells[place].train, self.facts[number], limit)
            if drawn:
                by_number[str(number)] = drawn
        return by_number

    def _read(self, key: str, facts: dict[str, Any], limit: int) -> dict[str, Any] | None:
        try:
            if not self._store.has(key):
                return None
            artifact = self._store.open(key)
            info, chosen = artifact.read_json("info"), artifact.read_json("checkpoints")
            shown = {name: info[name] for name in ("parameters", "environments") if info.get(name)}
            epochs = [checkpoint["epoch"] for checkpoint in chosen.values()]
            drawn = curves(artifact.read_json("history"), limit, epochs)
        except (BenchError, KeyError, ValueError, TypeError, AttributeError):  # another's, of another form
            return None
        facts |= shown
        return drawn


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


def _texts(prefix: str, values: Any) -> dict[str, str]:
    if not isinstance(values, Mapping):
        return {}
    return {
        f"{prefix}.{name}": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in values.items()
    }


def points(trainings: int) -> int:
    """Return the number of points that a curve may have, given the number of trainings shown."""
    return max(LEAST, min(MOST, BUDGET // (SERIES * max(trainings, 1))))


def curves(history: Sequence[Mapping[str, Any]], limit: int, keep: Sequence[int] = ()) -> dict[str, Any]:
    """Return a history as ``epochs`` and ``series``: name -> values, None if undefined, rounded to what can be seen.

    The scores come first. ``loss`` is left out if it is the only term's sum.

    Args:
        history: one row per epoch: ``epoch``, loss terms, ``score/SPLIT``.
        limit: most points, evenly spaced, the first and the last among them.
        keep: epochs that must be among them, beyond the limit.
    """
    rows = thinned(history, limit, keep)
    names = sorted({name for row in history for name in row if name != "epoch"}, key=_order)
    digits = 4 if limit == MOST else 3
    series = {name: [_short(row.get(name), digits) for row in rows] for name in names}
    terms = [name for name in names if not name.startswith("score/") and name != "loss"]
    if len(terms) == 1 and series.get("loss") == series[terms[0]]:
        del series["loss"]
    return {"epochs": [row["epoch"] for row in rows], "series": series}


def thinned(history: Sequence[Mapping[str, Any]], limit: int, keep: Sequence[int] = ()) -> list[Mapping[str, Any]]:
    """Return at most ``limit`` rows, evenly spaced, and those of the epochs to keep."""
    count = len(history)
    if count <= limit:
        return list(history)
    chosen = {round(step * (count - 1) / (limit - 1)) for step in range(limit)}
    chosen |= {place for place, row in enumerate(history) if row["epoch"] in keep}
    return [history[place] for place in sorted(chosen)]


def _order(name: str) -> tuple[int, str]:
    return (0 if name.startswith("score/") else 2 if name == "loss" else 1), name


def _short(value: Any, digits: int) -> float | None:
    return float(f"{value:.{digits}g}") if isinstance(value, (int, float)) else None


def cost_table(titles: Mapping[str, str], records: Mapping[str, Mapping[str, Any]]) -> TextTable:
    """Lay out the cost of the stages of each kind, in the order of the pipeline, and of all.

    Args:
        titles: stage key -> title, whose first word is the kind.
        records: stage key -> the store's record of its execution, in this run or an earlier one.
    """
    kinds: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in STAGE_KINDS}
    for key, title in titles.items():
        kinds.setdefault(kind_of(title), []).append(records.get(key, {}))
    costs = {kind: stages for kind, stages in kinds.items() if stages}
    if len(costs) > 1:
        costs["all"] = [stage for stages in costs.values() for stage in stages]
    header = ("Stage", "Count", "Seconds", "CPU seconds", "Mean, s", "Longest, s", "Peak memory")
    rows = tuple(tuple(map(Text, _cost(kind, stages))) for kind, stages in costs.items())
    return TextTable("Stage timings", header, rows)


def kind_of(title: str) -> str:
    """Return the kind of a stage, by its title."""
    first = title.partition(" ")[0]
    return first if first in STAGE_KINDS else "analyse"


def _cost(kind: str, stages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    wall, cpu, peaks = ([n for s in stages if isinstance(n := s.get(name), (int, float))] for name in _COSTS)
    yield kind
    yield str(len(stages)) if len(wall) == len(stages) else f"{len(stages)} ({len(wall)} timed)"
    yield from map(seconds_text, (sum(wall), sum(cpu), sum(wall) / len(wall) if wall else None, max(wall, default=0)))
    yield size_text(int(max(peaks))) if any(peaks) else "–"


_COSTS = ("seconds", "cpu_seconds", "peak_memory")


def seconds_text(value: float | None) -> str:
    """Return seconds with as many decimals as make sense; an en dash for none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
