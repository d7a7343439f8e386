"""Common parts of quantifiers: checks of their input, calibration folds, and columns for classes without rows."""

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from harness import BenchError

Array = np.ndarray[Any, np.dtype[Any]]
Split = tuple[Array, Array]


def check(embeddings: Array, labels: Array, num_classes: int) -> Split:
    """The rows as float64 (n, d) and int64 (n,)."""
    x, y = np.asarray(embeddings, dtype=np.float64), np.asarray(labels).reshape(-1)
    if len(x) != len(y):
        raise BenchError(f"quantifier: {len(x)} embeddings but {len(y)} labels")
    if not np.isfinite(x).all():
        raise BenchError(f"quantifier: {(~np.isfinite(x)).any(1).sum()} embeddings hold a value that is not finite")
    if not np.isin(y, np.arange(num_classes)).all():
        raise BenchError(f"quantifier: training labels must be 0 to {num_classes - 1}, and none may be missing")
    present = np.unique(y)
    if len(present) < 2:
        raise BenchError(f"quantifier: the training graphs hold one class only ({int(present[0])}); nothing to fit")
    return x, y.astype(np.int64)


def folds(labels: Array, flags: list[str], most: int = 5) -> list[Split]:
    """Stratified, unshuffled (fit rows, held-out rows) pairs, as many as the smallest class allows; none below two."""
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if smallest < 2:
        flags.append("not calibrated: a class has a single training graph")
        return []
    if smallest < most:
        flags.append(f"calibration folds reduced to {smallest}: a class has {smallest} training graphs")
    return list(StratifiedKFold(min(most, smallest)).split(np.zeros(len(labels)), labels))


def all_columns(probabilities: Array, classes: Array, num_classes: int) -> Array:
    """(m, C) probabilities from (m, number of classes present), zero for classes without training rows."""
    full = np.zeros((len(probabilities), num_classes))
    full[:, classes] = probabilities / probabilities.sum(1, keepdims=True)
    return full
