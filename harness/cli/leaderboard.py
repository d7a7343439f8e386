"""The best rows so far while a run goes on: means of validation scores, so that nobody peeks at test."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from harness.results.summary import mean
from harness.suite.settings import best_rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.plan import Cell
    from harness.run.session import Session

_SHOWN = 3
_AT_ONCE = 200
"""Most artifacts that one look reads: a display must not stand still over a large store."""


class Standings:
    """Reads each score once, when it is there, and keeps what follows for its row."""

    def __init__(self, session: Session) -> None:
        self._store = session.store
        self._cells: dict[str, list[Cell]] = defaultdict(list)
        for cell in session.plan.cells:
            self._cells[cell.score].append(cell)
        self._unread: list[str] = []
        self._scores: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._best: dict[str, dict[str, float]] = {cell.dataset: {} for cell in session.plan.cells}

    def add(self, keys: Iterable[str]) -> None:
        """Tell of score artifacts that are there; other keys do not matter."""
        self._unread += [key for key in keys if key in self._cells]

    def best(self) -> list[tuple[str, str, float]]:
        """(dataset, method, score): the best methods of each dataset by their best configuration's mean."""
        now, self._unread = self._unread[:_AT_ONCE], self._unread[_AT_ONCE:]
        for key in now:
            self._read(key)
        shown: list[tuple[str, str, float]] = []
        for dataset, methods in self._best.items():
            rows = sorted(methods.items(), key=lambda item: item[1], reverse=True)[:_SHOWN]
            shown += [(dataset, method, score) for method, score in rows]
        return shown

    def _read(self, key: str) -> None:
        if not self._store.has(key):
            return
        rows = self._store.open(key).read_json("scores")
        values = [row["value"] for row in rows if row["role"] == "val" and row["rule"] == best_rule(row["split"])]
        if not values or values[0] is None:
            return
        for cell in self._cells[key]:
            by_configuration = self._scores[cell.dataset, cell.method]
            by_configuration[cell.configuration.id].append(values[0])
            self._best[cell.dataset][cell.method] = max(map(mean, by_configuration.values()))
