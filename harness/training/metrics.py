"""Scores of a split from its logits (accuracy, ROC-AUC, Matthews correlation). NumPy only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.data import Task
from harness.results.summary import mean

Floats = NDArray[np.float64]
ClassScore = Callable[[Floats, int], Floats]
"""(n, C) predictions and a class to the (n,) scores that rank the rows for it."""


@dataclass(frozen=True)
class Score:
    """A score, or why there is none.

    Attributes:
        value: a fraction in [0, 1], for ``mcc`` in [-1, 1]; None where the score is undefined.
        status: ``ok`` or ``undefined``.
        reason: why it is undefined (``1 class``, ``no labels``, ``non-finite predictions``), or a remark on a
            defined score (``mean over 10 of 12 tasks: the others have 1 class``).
    """

    value: float | None
    status: Literal["ok", "undefined"] = "ok"
    reason: str = ""


def score(logits: ArrayLike, y: ArrayLike, task: Task) -> Score:
    """Return the task's metric over a whole split, never a mean of per-batch values: batch size cannot matter.

    Args:
        logits: (n, C), or (n, T) for multi-task.
        y: (n,) or (n, 1) class labels, or (n, T) binary labels; NaN where not measured, which is left out.
        task: says how to read both, and which metric.

    Raises:
        ValueError: the shapes do not fit the task or each other.
    """
    return _score(logits, y, task, _log_odds)


def score_probabilities(probabilities: ArrayLike, y: ArrayLike, task: Task) -> Score:
    """Return :func:`score` of (n, C) class probabilities (single-label tasks) instead of logits."""
    return _score(probabilities, y, task, lambda table, column: table[:, column])


def _score(table: ArrayLike, y: ArrayLike, task: Task, class_score: ClassScore) -> Score:
    predictions = np.asarray(table, dtype=np.float64)
    labels = np.asarray(y, dtype=np.float64)
    if predictions.ndim != 2 or predictions.shape[1] != task.outputs:
        raise ValueError(f"expected predictions of shape (n, {task.outputs}), found {predictions.shape}")
    width = task.num_tasks if task.kind == "multitask" else 1
    if labels.size != len(predictions) * width or labels.ndim > 2:
        raise ValueError(f"expected {len(predictions)} × {width} labels, found shape {labels.shape}")
    if not np.isfinite(predictions).all():
        return Score(None, "undefined", "non-finite predictions")
    if np.isnan(labels).all():
        return Score(None, "undefined", "no labels")
    if task.kind == "multitask":
        return _multitask(predictions, labels.reshape(len(predictions), width), task.metric)
    labels = labels.reshape(-1)
    known = ~np.isnan(labels)
    return _single_label(predictions[known], labels[known].astype(np.int64), task.metric, class_score)


def _single_label(table: Floats, classes: NDArray[np.int64], metric: str, class_score: ClassScore) -> Score:
    present = np.unique(classes)
    if metric == "accuracy":
        return Score(accuracy(table.argmax(1), classes))
    if len(present) < 2:
        return Score(None, "undefined", "1 class")
    if metric == "mcc":
        return Score(mcc(table.argmax(1), classes))
    if table.shape[1] == 2:
        return Score(rocauc(class_score(table, 1), classes == 1))
    values = [rocauc(class_score(table, c), classes == c) for c in present]
    missing = table.shape[1] - len(present)
    remark = f"mean over {len(present)} of {table.shape[1]} classes: the others are absent" if missing else ""
    return Score(mean(values), reason=remark)


def _multitask(logits: Floats, y: Floats, metric: str) -> Score:
    values = []
    for column, labels in zip(logits.T, y.T, strict=True):
        known = ~np.isnan(labels)
        positive = labels[known] > 0
        if metric == "accuracy" and known.any():
            values.append(accuracy(column[known] > 0, positive))
        elif metric != "accuracy" and 0 < positive.sum() < len(positive):
            values.append(rocauc(column[known], positive) if metric == "rocauc" else mcc(column[known] > 0, positive))
    if not values:
        return Score(None, "undefined", "1 class")
    lacking = "no labels" if metric == "accuracy" else "1 class or no labels"
    tasks = y.shape[1]
    remark = f"mean over {len(values)} of {tasks} tasks: the others have {lacking}" if len(values) < tasks else ""
    return Score(mean(values), reason=remark)


def _log_odds(logits: Floats, column: int) -> Floats:
    """Return (n,) log odds of one class against the rest: the softmax's order without saturation at 0 and 1."""
    others = np.delete(logits, column, axis=1)
    peak = others.max(1, keepdims=True)
    rest: Floats = peak[:, 0] + np.log(np.exp(others - peak).sum(1))
    return logits[:, column] - rest


def accuracy(predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return the fraction of (n,) predictions that equal the truth; n is at least 1."""
    return float(np.mean(predicted == truth))


def mcc(predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return the Matthews correlation of (n,) predicted and true classes; 0 where all predictions are one class.

    For C classes Gorodkin's R_K (*Comparing two K-category assignments by a K-category correlation coefficient*,
    Computational Biology and Chemistry 2004): the covariance of both indicator tables over their deviations.
    Whole numbers until one division and the root of it, so that equal correlations are equal to the bit.

    Args:
        predicted: (n,) classes.
        truth: (n,) classes, at least two different ones.
    """
    labels, codes = np.unique(np.concatenate([predicted, truth]), return_inverse=True)
    guessed, true = (np.bincount(part, minlength=len(labels)).tolist() for part in np.split(codes, 2))
    n, right = len(truth), int((predicted == truth).sum())
    covariance = right * n - sum(g * t for g, t in zip(guessed, true, strict=True))
    spread = (n * n - sum(g * g for g in guessed)) * (n * n - sum(t * t for t in true))
    return math.copysign(math.sqrt(covariance**2 / spread), covariance) if spread else 0.0


def rocauc(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve: how probably a positive outscores a negative, ties counting one half.

    The rank statistic of Mann and Whitney. Its numerator is a whole multiple of one half, so the result does not
    depend on the order of the rows.

    Args:
        scores: (n,) finite scores.
        positive: (n,) with at least one True and one False.
    """
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    positives = int(positive.sum())
    wins = float(ranks[positive].sum()) - positives * (positives + 1) / 2
    return wins / (positives * (len(scores) - positives))
