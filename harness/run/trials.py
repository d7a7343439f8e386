"""Score the trials of a search by what the store holds, so that a sampler can choose the next. No torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.plan import Plan
from harness.plan.build import Cell
from harness.plan.datasets import Declarations
from harness.results.summary import Summary
from harness.run.collect import read_scores
from harness.store import Failure, Store
from harness.suite.settings import checkpoint_rule
from harness.suite.spec import Row, Suite

_LOST = -math.inf
"""The score of a trial that failed, or diverged, on any seed."""


@dataclass(frozen=True)
class TrialScores:
    """Scores trials on validation, as the choice between configurations does; ``failures`` are those of this run."""

    suite: Suite
    facts: Declarations
    store: Store
    failures: Mapping[str, Failure] = field(default_factory=dict)
    _known: dict[str, float] = field(default_factory=dict)

    def __call__(self, plan: Plan, row: Row, cells: Sequence[Cell]) -> float | None:
        """Return the mean over seeds; None while a cell has neither a score nor a failure."""
        declared = self.facts.declare(self.suite.dataset(row.dataset).component)
        split = declared.default_val if row.select.split == "auto" else row.select.split
        place = checkpoint_rule(row.select.checkpoint, split), split
        values = [self._value(plan, cell, place) for cell in cells]
        if None in values:
            return None
        return _LOST if _LOST in values else Summary(tuple(values)).mean

    def _value(self, plan: Plan, cell: Cell, place: tuple[str, str]) -> float | None:
        if cell.score not in self._known:
            rows = read_scores(self.store, cell.score)
            if rows is not None:
                found = next((row.value for row in rows if (row.rule, row.split) == place), None)
                self._known[cell.score] = _LOST if found is None else found
            elif any(key in self.failures or self.store.failure(key) for key in plan.ancestry(cell.score)):
                return _LOST
        return self._known.get(cell.score)
