"""Checks of quantifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.stages import quantify
from harness.testing.report import CheckFunction
from harness.testing.rig import SEED, Rig, Trial, all_states, global_state, hyperparameters_matter, same_seed
from harness.training.bases import Quantifier

CLASSES, ROWS, NEW, WIDTH = 3, 60, 20, 8
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class QuantifierRig(Rig[Quantifier, Trial]):
    """A quantifier under test; its outputs are tables of probabilities."""

    def trial(self, values: Mapping[str, Any], seed: int) -> Trial:
        """Fit on ordinary data."""
        before = all_states()
        tables = self.fit(*data(), values, seed)
        draws = ["fit() or predict() changes the state of torch's, NumPy's or Python's global generator"]
        return Trial({str(i): table for i, table in enumerate(tables)}, draws=draws * (all_states() != before))

    def fit(
        self, x: Floats, y: Ints, new: Floats, values: Mapping[str, Any] | None = None, seed: int = SEED
    ) -> list[Floats]:
        """Return two tables for each setting: of the new rows, and of the training rows."""
        quantifier = self.make(values)
        quantifier.seed = seed
        tables = []
        for setting in quantify.settings(quantifier):
            fitted = quantify.fit(quantifier, x.copy(), y.copy(), CLASSES, setting)
            tables += [fitted.predict(new), fitted.predict(x) if fitted.training is None else fitted.training]
        return tables


def data(separation: float = 1.0, labels: Ints | None = None) -> tuple[Floats, Ints, Floats]:
    """Return (n, d) embeddings around a centre per class, their labels, and new rows alike; one column is large."""
    rng = np.random.default_rng(11)
    centres = separation * rng.normal(size=(CLASSES, WIDTH))
    y = rng.permutation(np.arange(ROWS) % CLASSES) if labels is None else labels
    x = centres[y] + rng.normal(size=(ROWS, WIDTH))
    new = centres[np.arange(NEW) % CLASSES] + rng.normal(size=(NEW, WIDTH))
    scale = np.array([30.0, *[1.0] * (WIDTH - 1)])
    return x * scale, y, new * scale


def rows_are_probabilities(rig: QuantifierRig) -> Iterator[str]:
    """Each row holds one probability per class, not negative, and sums to one."""
    yield from _improper(list(rig.outcome().outputs.values()), "")


def _improper(tables: list[Floats], given: str) -> Iterator[str]:
    if not tables:
        yield "settings() names no candidate"
    for table, rows in zip(tables, [NEW, ROWS] * len(tables), strict=False):
        if np.shape(table) != (rows, CLASSES):
            yield f"{given}a table of shape {np.shape(table)}, expected {(rows, CLASSES)}"
        elif not np.isfinite(table).all() or (table < 0).any():
            yield f"{given}values that are negative or not finite"
        elif not np.allclose(table.sum(1), 1.0, atol=1e-6):
            yield f"{given}rows that sum to between {table.sum(1).min():.4g} and {table.sum(1).max():.4g}, not to one"


def columns_in_class_order(rig: QuantifierRig) -> Iterator[str]:
    """Columns are in the order of the classes, also where a class has no training row: its column is the smallest."""
    for absent in (None, 0, 1):
        present = [c for c in range(CLASSES) if c != absent]
        x, y, _ = data(separation=5.0, labels=np.array(present)[np.arange(ROWS) % len(present)])
        given = "" if absent is None else f"without rows of class {absent}: "
        for table in rig.fit(x, y, x[:NEW])[1::2]:
            if np.shape(table) != (ROWS, CLASSES):
                yield f"{given}a table of shape {np.shape(table)}, expected {(ROWS, CLASSES)}"
            elif (right := float((table.argmax(1) == y).mean())) < 0.8:
                yield f"{given}the largest column is the label's in {right:.0%} of well separated training rows"


def rare_class(rig: QuantifierRig) -> Iterator[str]:
    """A class with three training rows, fewer than the usual folds, gives proper tables."""
    y = np.arange(ROWS) % 2
    y[[5, 20, 41]] = 2
    yield from _improper(rig.fit(*data(labels=y)), "a class of three rows: ")


def rows_by_themselves(rig: QuantifierRig) -> Iterator[str]:
    """A row's probabilities do not depend on the other rows to predict, and inputs are left as they are."""
    quantifier = rig.make()
    quantifier.seed = SEED
    x, y, new = data()
    inputs = x.copy(), y.copy()
    for setting in quantifier.settings():
        fitted = quantifier.fit(*inputs, CLASSES, **setting)
        together = fitted.predict(new)
        alone = np.concatenate([fitted.predict(new[i : i + 1]) for i in range(NEW)])
        if not np.allclose(together, alone, atol=1e-6):
            yield f"{setting}: rows predicted alone differ by {np.abs(together - alone).max():.2g}"
    if not (np.array_equal(inputs[0], x) and np.array_equal(inputs[1], y)):
        yield "fit() changes its inputs in place"


CHECKS: tuple[CheckFunction, ...] = (
    rows_are_probabilities,
    columns_in_class_order,
    rare_class,
    rows_by_themselves,
    same_seed,
    global_state,
    hyperparameters_matter,
)
