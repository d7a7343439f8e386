"""What the store and the record say of each training that a table shows: cost, stages, history, why it failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.errors import BenchError
from harness.report.html.curves import curves, points
from harness.report.html.timing import kind_of
from harness.results.rows import ResultRow, RunResults
from harness.results.run_record import CellRecord, RunRecord
from harness.safe_io import size_text
from harness.store import Store

Place = tuple[str, str, str, int]
"""Dataset, method, configuration, seed."""


class Trainings:
    """The trainings of a run that are asked for, numbered in that order.

    Attributes:
        found: one mapping for each, as the page's script reads it.
        curves: number -> its learning curves.
        components: kind and name -> digest of the source, of what took part.
    """

    def __init__(
        self, record: RunRecord, results: RunResults, store: Store, costs: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._store, self._costs, self._failures = store, costs, record.failures
        self._cells = {cell.coordinates: cell for cell in record.cells}
        self._rows: dict[Place, ResultRow] = {}
        for row in results.rows:
            self._rows.setdefault(row.coordinates, row)
        self._numbers: dict[Place, int] = {}
        self.found: list[dict[str, Any]] = []
        self.components: dict[tuple[str, str], str] = {}

    def number(self, place: Place) -> int | None:
        """The number of a training; None where the run has no such cell."""
        cell = self._cells.get(place)
        if cell is None:
            return None
        if place not in self._numbers:
            self._numbers[place] = len(self.found)
            self.found.append(self._describe(cell, self._rows.get(place)))
        return self._numbers[place]

    def _describe(self, cell: CellRecord, row: ResultRow | None) -> dict[str, Any]:
        facts: dict[str, Any] = {"cell": cell.id, "stages": self._stages(cell)}
        if row is None:
            return facts
        if row.seconds:
            facts["seconds"] = round(row.seconds, 2)
        if row.peak_memory:
            facts["memory"] = size_text(row.peak_memory)
        if row.traceback:
            facts["traceback"] = row.traceback
        return facts

    def _stages(self, cell: CellRecord) -> dict[str, float]:
        """Seconds of all stages that the cell builds on, by kind."""
        sums: dict[str, float] = {}
        for key, title in cell.needs.items():
            seconds = self._costs.get(key, {}).get("seconds")
            if isinstance(seconds, (int, float)):
                sums[kind_of(title)] = round(sums.get(kind_of(title), 0.0) + seconds, 2)
        return sums

    def curves(self) -> dict[str, Any]:
        """The learning curves by number, of those trainings that are there. Completes ``found`` from the artifacts."""
        limit = points(len(self._numbers))
        found: dict[str, Any] = {}
        for place, number in self._numbers.items():
            drawn = self._read(self._cells[place].train, self.found[number], limit)
            if drawn:
                found[str(number)] = drawn
        return found

    def _read(self, key: str, facts: dict[str, Any], limit: int) -> dict[str, Any] | None:
        try:
            if not self._store.has(key):
                return None
            artifact = self._store.open(key)
            info, chosen = artifact.read_json("info"), artifact.read_json("checkpoints")
            history = artifact.read_json("history")
            told = {name: info[name] for name in ("parameters", "environments") if info.get(name)}
            drawn = curves(history, limit, [checkpoint["epoch"] for checkpoint in chosen.values()])
        except (BenchError, KeyError, ValueError, TypeError, AttributeError):  # another's, of another form
            return None
        self._note_components(artifact.meta.preimage)
        facts |= told
        return drawn

    def _note_components(self, preimage: Mapping[str, Any]) -> None:
        for kind, name, source in components(preimage):
            self.components.setdefault((kind, name), source)


def components(preimage: Any) -> Iterable[tuple[str, str, str]]:
    """Kind, name and source digest of every component that a key's preimage names."""
    if isinstance(preimage, Mapping):
        if {"kind", "name", "source"} <= preimage.keys():
            yield str(preimage["kind"]), str(preimage["name"]), str(preimage["source"])
        for value in preimage.values():
            yield from components(value)
    elif isinstance(preimage, (list, tuple)):
        for value in preimage:
            yield from components(value)
