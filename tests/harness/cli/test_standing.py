"""The best rows so far: each score is read once, and never too many at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cli import leaderboard as standing
from harness.cli.leaderboard import Standings


@dataclass
class Scores:
    """A store of score artifacts; counts what is read."""

    values: dict[str, float | None]
    read: list[str] = field(default_factory=list)

    def has(self, key: str) -> bool:
        return key in self.values

    def open(self, key: str) -> Any:
        self.read.append(key)
        rows = [
            {"role": "val", "rule": "best@val", "split": "val", "value": self.values[key]},
            {"role": "test", "rule": "best@val", "split": "test", "value": 1.0},
        ]
        return SimpleNamespace(read_json=lambda _: rows)


def cell(dataset: str, method: str, configuration: str, seed: int) -> Any:
    key = f"{dataset}/{method}/{configuration}/{seed}"
    return SimpleNamespace(dataset=dataset, method=method, configuration=SimpleNamespace(id=configuration), score=key)


CELLS = [cell(d, m, c, s) for d in ("A", "B") for m in ("ERM", "IRM") for c in ("x", "y") for s in (1, 2)]


def standings(values: dict[str, float | None]) -> tuple[Standings, Scores]:
    scores = Scores(values)
    return Standings(cast("Any", SimpleNamespace(plan=SimpleNamespace(cells=CELLS), store=scores))), scores


def test_the_best_configurations_mean_stands_for_a_row() -> None:
    found, scores = standings(
        {"A/ERM/x/1": 0.5, "A/ERM/x/2": 0.7, "A/ERM/y/1": 0.65, "A/IRM/x/1": 0.62, "B/IRM/y/2": 0.1}
    )
    assert found.best() == []
    found.add([*scores.values, "train-key", "A/IRM/y/1"])
    assert found.best() == [("A", "ERM", 0.65), ("A", "IRM", 0.62), ("B", "IRM", 0.1)]
    scores.values["A/ERM/y/2"] = 0.25
    found.add(["A/ERM/y/2"])
    assert found.best()[0] == ("A", "IRM", 0.62), "means change as seeds come in"
    assert sorted(scores.read) == sorted(scores.values), "each is read once, however often it is shown"


def test_an_undefined_score_counts_for_nothing() -> None:
    found, scores = standings({"A/ERM/x/1": None, "A/ERM/x/2": 0.5})
    found.add(scores.values)
    assert found.best() == [("A", "ERM", 0.5)]


def test_a_look_reads_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "_AT_ONCE", 3)
    found, scores = standings({item.score: 0.5 for item in CELLS})
    found.add(scores.values)
    for looks in range(1, 7):
        found.best()
        assert len(scores.read) == min(3 * looks, len(CELLS))
