"""The best rows so far while a run goes on: means of validation scores, so that nobody peeks at test."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.runs.session import Session

_SHOWN = 3


class Standings:
    """Remembers the scores that were read, so that each artifact is read once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[str, float | None] = {}

    def best(self) -> list[tuple[str, str, float]]:
        """(dataset, method, score): the best methods of each dataset by their best configuration's mean."""
        means: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for cell in self._session.plan.cells:
            score = self._score(cell.score)
            if score is not None:
                means[cell.dataset, cell.method][cell.configuration.id].append(score)
        found = {row: max(sum(values) / len(values) for values in by.values()) for row, by in means.items()}
        shown: list[tuple[str, str, float]] = []
        for dataset in dict.fromkeys(dataset for dataset, _ in found):
            rows = sorted(((s, m) for (d, m), s in found.items() if d == dataset), reverse=True)[:_SHOWN]
            shown += [(dataset, method, score) for score, method in rows]
        return shown

    def _score(self, key: str) -> float | None:
        if key in self._known:
            return self._known[key]
        if not self._session.store.has(key):
            return None
        rows = self._session.store.open(key).read_json("scores")
        values = [row["value"] for row in rows if row["role"] == "val" and row["rule"] == f"best@{row['split']}"]
        self._known[key] = values[0] if values else None
        return self._known[key]
