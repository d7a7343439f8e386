"""Checks of quantifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.stages import quantify
from harness.testing.report import CheckFunction
from harness.testing.rig import (
    SEED,
    Rig,
    Trial,
    global_state,
    hyperparameters_matter,
    noting_draws,
    same_seed,
    works,
)
from harness.training.bases import Fitted, Quantifier

CLASSES, ROWS, NEW, WIDTH = 3, 60, 20, 8
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class QuantifierRig(Rig[Quantifier, Trial]):
    """A quantifier under test; its outputs are tables of probabilities."""

    def trial(self, values: Mapping[str, Any], seed: int) -> Trial:
        """Fit on ordinary data."""
        x, y, new = self.data()
        draws: list[str] = []
        with noting_draws("fit() or predict()", draws):
            fits = self.fit(x, y, values, seed)
            tables = [table for fitted, on_train in fits for table in (fitted.predict(new), on_train)]
        return Trial({str(place): table for place, table in enumerate(tables)}, draws=draws)

    def fit(
        self, x: Floats, y: Ints, values: Mapping[str, Any] | None = None, seed: int = SEED
    ) -> list[tuple[Fitted, Floats]]:
        """Return for each setting what is fitted, and the table of the training rows; both as the engine wants them."""
        quantifier, fits = self.make(values), []
        quantifier.seed = seed
        for setting in quantify.settings(quantifier):
            fitted = quantify.fit(quantifier, x.copy(), y.copy(), CLASSES, setting)
            on_train = fitted.predict(x) if fitted.training is None else fitted.training
            quantify.check(quantifier, on_train, len(x), CLASSES)
            fits.append((fitted, on_train))
        return fits

    def data(self, separation: float = 1.0, labels: Ints | None = None) -> tuple[Floats, Ints, Floats]:
        """Return what the engine hands out: :func:`embeddings`, or :func:`fields` where the class declares some."""
        return fields(len(self.cls.oracle), labels) if self.cls.oracle else embeddings(separation, labels)


def fields(count: int, labels: Ints | None = None) -> tuple[Floats, Ints, Floats]:
    """Return (n, count) oracle fields that mostly hold the label, the labels, and new rows alike."""
    rng = np.random.default_rng(11)
    y = rng.permutation(np.arange(ROWS) % CLASSES) if labels is None else labels
    x = np.where(rng.random((ROWS, count)) < 0.9, y[:, None], rng.integers(CLASSES, size=(ROWS, count)))
    return x.astype(np.float64), y, rng.integers(CLASSES, size=(NEW, count)).astype(np.float64)


def embeddings(separation: float = 1.0, labels: Ints | None = None) -> tuple[Floats, Ints, Floats]:
    """Return (n, d) embeddings around a centre per class, their labels, and new rows alike; one column is large."""
    rng = np.random.default_rng(11)
    centres = separation * rng.normal(size=(CLASSES, WIDTH))
    y = rng.permutation(np.arange(ROWS) % CLASSES) if labels is None else labels
    x = centres[y] + rng.normal(size=(ROWS, WIDTH))
    new = centres[np.arange(NEW) % CLASSES] + rng.normal(size=(NEW, WIDTH))
    scale = np.array([30.0, *[1.0] * (WIDTH - 1)])
    return x * scale, y, new * scale


def columns_in_class_order(rig: QuantifierRig) -> Iterator[str]:
    """Columns are in the order of the classes, also where a class has no training row: its column is the smallest."""
    rig.outcome()
    for absent in (None, 0, 1):
        present = [c for c in range(CLASSES) if c != absent]
        x, y, _ = rig.data(separation=5.0, labels=np.array(present)[np.arange(ROWS) % len(present)])
        given = "" if absent is None else f"without rows of class {absent}: "
        for _, table in rig.fit(x, y):
            if (right := float((table.argmax(1) == y).mean())) < 0.8:
                yield f"{given}the largest column is the label's in {right:.0%} of well separated training rows"


def rare_class(rig: QuantifierRig) -> Iterator[str]:
    """A class with three training rows, fewer than the usual folds, gives proper tables."""
    rig.outcome()
    y = np.arange(ROWS) % 2
    y[[5, 20, 41]] = 2
    rig.fit(*rig.data(labels=y)[:2])
    yield from ()


def rows_by_themselves(rig: QuantifierRig) -> Iterator[str]:
    """A row's probabilities do not depend on the other rows to predict."""
    rig.outcome()
    x, y, new = rig.data()
    for fitted, _ in rig.fit(x, y):
        together = fitted.predict(new)
        alone = np.concatenate([fitted.predict(new[i : i + 1]) for i in range(NEW)])
        if not np.allclose(together, alone, atol=1e-6):
            yield f"rows predicted alone differ by {np.abs(together - alone).max():.2g}"


CHECKS: tuple[CheckFunction, ...] = (
    works,
    columns_in_class_order,
    rare_class,
    rows_by_themselves,
    same_seed,
    global_state,
    hyperparameters_matter,
)
