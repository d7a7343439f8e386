"""Best rows so far of a running suite: means of validation scores, so that nobody looks at test scores."""

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
"""Artifacts that one call reads at most: a display must not wait for a large store."""


class Standings:
    """Best rows by dataset; each score is read once."""

    def __init__(self, session: Session) -> None:
        self._store = session.store
        self._cells: dict[str, list[Cell]] = defaultdict(list)
        for cell in session.plan.cells:
            self._cells[cell.score].append(cell)
        self._unread: list[str] = []
        self._scores: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._best: dict[str, dict[str, float]] = {cell.dataset: {} for cell in session.plan.cells}

    def add(self, keys: Iterable[str]) -> None:
        """Add score artifacts that are in the store; other keys are ignored."""
        self._unread += [key for key in keys if key in self._cells]

    def best(self) -> list[tuple[str, str, float]]:
        """Return (dataset, method, score) of each dataset's best methods, by their best configuration's mean."""
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
