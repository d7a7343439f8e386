"""Checks of quantifiers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.stages import quantify
from harness.testing.report import CheckFunction
from harness.testing.rig import SEED
from harness.testing.rng import all_states
from harness.testing.settings import EVERYWHERE, effects_as_declared
from harness.training.bases import Quantifier

CLASSES, ROWS, NEW, WIDTH = 3, 60, 20, 8
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass
class QuantifierSubject:
    """A quantifier's class, and what was fitted so far."""

    cls: type[Quantifier]
    _tables: dict[str, list[Floats]] = field(default_factory=dict, repr=False)

    @property
    def base(self) -> dict[str, Any]:
        """The settings of ``probes["*"]``."""
        return dict(self.cls.probes.get(EVERYWHERE, {}))

    def tables(self, values: Mapping[str, Any] | None = None) -> list[Floats]:
        """Probabilities of new rows and of training rows, for each of the quantifier's settings."""
        settings = {**self.base, **(values or {})}
        key = json.dumps(settings, sort_keys=True)
        if key not in self._tables:
            self._tables[key] = fit(self.cls, settings, *data())
        return self._tables[key]


def data(separation: float = 1.0, labels: Ints | None = None) -> tuple[Floats, Ints, Floats]:
    """(n, d) embeddings around a centre per class, their labels, and new rows of the same kind; one scale is large."""
    rng = np.random.default_rng(11)
    centres = separation * rng.normal(size=(CLASSES, WIDTH))
    y = rng.permutation(np.arange(ROWS) % CLASSES) if labels is None else labels
    x = centres[y] + rng.normal(size=(ROWS, WIDTH))
    new = centres[np.arange(NEW) % CLASSES] + rng.normal(size=(NEW, WIDTH))
    scale = np.array([30.0, *[1.0] * (WIDTH - 1)])
    return x * scale, y, new * scale


def fit(cls: type[Quantifier], values: Mapping[str, Any], x: Floats, y: Ints, new: Floats) -> list[Floats]:
    """Two tables for each setting: of the new rows, and of the training rows."""
    quantifier = cls(**values)
    quantifier.seed = SEED
    tables = []
    for setting in quantify.settings(quantifier):
        fitted = quantify.fit(quantifier, x.copy(), y.copy(), CLASSES, setting)
        tables += [fitted.predict(new), fitted.predict(x) if fitted.training is None else fitted.training]
    return tables


def rows_are_probabilities(subject: QuantifierSubject) -> Iterator[str]:
    """Each row holds one probability per class, not negative, and sums to one.

    Cause: decision values or unnormalised scores instead of probabilities, or a column missing.

    Look at: fit
    """
    yield from _improper(subject.tables(), "")


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


def columns_in_class_order(subject: QuantifierSubject) -> Iterator[str]:
    """Columns are in the order of the classes, also where a class has no training row: its column is the smallest.

    Cause: columns in the order in which classes were met, or in that of `estimator.classes_` without filling the
    absent ones.

    Look at: fit
    """
    for absent in (None, 0, 1):
        y = np.arange(ROWS) % CLASSES
        present = [c for c in range(CLASSES) if c != absent]
        y = y if absent is None else np.array(present)[np.arange(ROWS) % 2]
        x, y, _ = data(separation=5.0, labels=y)
        given = "" if absent is None else f"without rows of class {absent}: "
        tables = fit(subject.cls, subject.base, x, y, x[:NEW])
        for table in tables[1::2]:
            if np.shape(table) != (ROWS, CLASSES):
                yield f"{given}a table of shape {np.shape(table)}, expected {(ROWS, CLASSES)}"
            elif (right := float((table.argmax(1) == y).mean())) < 0.8:
                yield f"{given}the largest column is the label's in {right:.0%} of well separated training rows"


def rare_class(subject: QuantifierSubject) -> Iterator[str]:
    """A class with three training rows gives proper tables.

    Cause: cross-validation with more folds than the class has rows.

    Look at: fit
    """
    y = np.arange(ROWS) % 2
    y[[5, 20, 41]] = 2
    yield from _improper(fit(subject.cls, subject.base, *data(labels=y)), "a class of three rows: ")


def rows_by_themselves(subject: QuantifierSubject) -> Iterator[str]:
    """A row's probabilities do not depend on the other rows to predict, and inputs are left as they are.

    Cause: scaling or ranking by the rows to predict instead of the training rows, or work in place on the inputs.

    Look at: fit
    """
    quantifier = subject.cls(**subject.base)
    quantifier.seed = SEED
    x, y, new = data()
    given = x.copy(), y.copy()
    for setting in quantifier.settings():
        fitted = quantifier.fit(*given, CLASSES, **setting)
        together = fitted.predict(new)
        alone = np.concatenate([fitted.predict(new[i : i + 1]) for i in range(NEW)])
        if not np.allclose(together, alone, atol=1e-6):
            yield f"{setting}: rows predicted alone differ by {np.abs(together - alone).max():.2g}"
    if not (np.array_equal(given[0], x) and np.array_equal(given[1], y)):
        yield "fit() changes its inputs in place"


def same_seed(subject: QuantifierSubject) -> Iterator[str]:
    """Two fits with one seed are bit for bit alike.

    Cause: an estimator without `random_state=self.seed`.

    Look at: fit
    """
    again = fit(subject.cls, subject.base, *data())
    if not _equal(again, subject.tables()):
        yield "a second fit with the same seed gives other probabilities"


def global_state(subject: QuantifierSubject) -> Iterator[str]:
    """Global generators are neither seeded nor drawn from; use ``self.seed``.

    Cause: an estimator or NumPy call that draws from the global generator; pass `self.seed` on.

    Look at: fit
    """
    before = all_states()
    fit(subject.cls, subject.base, *data())
    if all_states() != before:
        yield "fit() or predict() changes the state of torch's, NumPy's or Python's global generator"


def hyperparameters_matter(subject: QuantifierSubject) -> Iterator[str]:
    """Changing a hyperparameter, where it is declared active, changes the probabilities.

    Cause: nothing reads `self.NAME`, or `settings()` does not hand it to `fit`; or its effect needs other settings
    (give them in `probes`).

    Look at: settings, fit
    """
    yield from effects_as_declared(
        subject.cls, subject.base, lambda one, two: not _equal(subject.tables(one), subject.tables(two))
    )


def _equal(left: list[Floats], right: list[Floats]) -> bool:
    return len(left) == len(right) and all(map(np.array_equal, left, right))


CHECKS: tuple[CheckFunction, ...] = (
    rows_are_probabilities,
    columns_in_class_order,
    rare_class,
    rows_by_themselves,
    same_seed,
    global_state,
    hyperparameters_matter,
)
