"""Metrics: against scikit-learn, at the edges, and equal ones to the bit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, matthews_corrcoef, roc_auc_score

from harness.data import Task
from harness.training.metrics import Score, mcc, rocauc, score, score_probabilities

BINARY = Task("binary", 2, metric="rocauc")
THREE = Task("multiclass", 3, metric="accuracy")
MULTI = Task("multitask", 2, num_tasks=3, metric="rocauc")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=60))
def test_rocauc_equals_sklearn_with_ties(pairs):
    scores = np.array([s for s, _ in pairs], dtype=float)
    positive = np.array([p for _, p in pairs])
    if positive.all() or not positive.any():
        return
    assert rocauc(scores, positive) == pytest.approx(roc_auc_score(positive, scores), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_row_order_and_batch_boundaries_leave_the_value_bit_equal(seed):
    rng = np.random.default_rng(seed)
    logits, y = rng.normal(size=(97, 2)).round(1), rng.integers(0, 2, 97)
    whole = score(logits, y, BINARY)
    for size in (1, 7, 1000):
        parts = np.concatenate([logits[i : i + size] for i in range(0, 97, size)])
        assert score(parts, y, BINARY) == whole
    order = rng.permutation(97)
    assert score(logits[order], y[order], BINARY) == whole


def test_binary_auc_ranks_by_the_probability_of_class_one():
    rng = np.random.default_rng(0)
    logits, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    probability = np.exp(logits[:, 1]) / np.exp(logits).sum(1)
    assert score(logits, y, BINARY).value == pytest.approx(roc_auc_score(y, probability))


def test_saturated_logits_keep_their_order():
    assert score([[0, 100], [0, 200], [0, 300]], [0, 1, 1], BINARY).value == 1.0


def test_three_class_auc_is_one_against_the_rest():
    task = Task("multiclass", 3, metric="rocauc")
    rng = np.random.default_rng(1)
    logits, y = rng.normal(size=(120, 3)), rng.integers(0, 3, 120)
    softmax = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert score(logits, y, task).value == pytest.approx(roc_auc_score(y, softmax, multi_class="ovr"))
    partial = score(logits, np.minimum(y, 1), task)
    assert partial.value is not None
    assert partial.reason == "mean over 2 of 3 classes: the others are absent"


def test_probabilities_score_as_sklearn_says():
    rng = np.random.default_rng(3)
    table, y = rng.dirichlet(np.ones(3), 90), rng.integers(0, 3, 90)
    found = score_probabilities(table, y, Task("multiclass", 3, metric="rocauc"))
    assert found.value == pytest.approx(roc_auc_score(y, table, multi_class="ovr"))
    assert score_probabilities(table, y, THREE).value == accuracy_score(y, table.argmax(1))
    certain = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert score_probabilities(certain, [0, 1], BINARY).value == 1.0


def test_accuracy_equals_sklearn():
    rng = np.random.default_rng(2)
    logits, y = rng.normal(size=(50, 3)), rng.integers(0, 3, 50)
    assert score(logits, y, THREE).value == accuracy_score(y, logits.argmax(1))
    assert score(logits, y.reshape(-1, 1), THREE) == score(logits, y, THREE)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60))
def test_matthews_correlation_equals_sklearn(pairs):
    predicted, truth = np.array(pairs).T
    if len(np.unique(truth)) < 2:
        return
    assert mcc(predicted, truth) == pytest.approx(matthews_corrcoef(truth, predicted), abs=1e-12)
    assert mcc(predicted[::-1], truth[::-1]) == mcc(predicted, truth)


def test_matthews_correlation_of_a_split():
    task = Task("binary", 2, metric="mcc")
    assert score([[0, 1], [1, 0], [0, 1]], [1, 0, 1], task).value == 1.0
    assert score([[0, 1], [1, 0], [0, 1]], [0, 1, 0], task).value == -1.0
    assert score([[0, 1], [0, 1], [0, 1]], [0, 1, 0], task).value == 0.0
    assert score([[0, 1], [1, 0]], [1, 1], task) == Score(None, "undefined", "1 class")
    assert score_probabilities([[0.2, 0.8], [0.7, 0.3]], [1, 0], task).value == 1.0


def test_multitask_matthews_correlation_is_the_mean_over_tasks_with_both_classes():
    y = np.array([[1, 1, math.nan], [0, 1, 1], [1, math.nan, 0], [0, 1, 0]])
    logits = np.array([[3.0, 0, -1], [2.0, 0, 1], [1.0, 0, 1], [-1.0, 0, -1]])
    result = score(logits, y, Task("multitask", 2, num_tasks=3, metric="mcc"))
    expected = matthews_corrcoef(y[:, 0], logits[:, 0] > 0), matthews_corrcoef(y[1:, 2], logits[1:, 2] > 0)
    assert result.value == pytest.approx(np.mean(expected), abs=1e-12)
    assert result.reason == "mean over 2 of 3 tasks: the others have 1 class or no labels"


def test_one_class_is_undefined_for_auc_and_defined_for_accuracy():
    logits = [[0.1, 0.2], [0.3, 0.1]]
    assert score(logits, [1, 1], BINARY) == Score(None, "undefined", "1 class")
    assert score(logits, [1, 1], Task("binary", 2)).value == 0.5


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_predictions_are_undefined(bad):
    assert score([[0.1, bad], [0.3, 0.1]], [0, 1], BINARY) == Score(None, "undefined", "non-finite predictions")


def test_missing_labels_are_left_out():
    nan = math.nan
    assert score([[0, 1], [1, 0], [0, 9]], [1.0, 0.0, nan], Task("binary", 2)).value == 1.0
    assert score([[0, 1], [1, 0]], [nan, nan], BINARY) == Score(None, "undefined", "no labels")
    assert score(np.zeros((0, 2)), np.zeros(0), BINARY).reason == "no labels"


def test_multitask_auc_is_the_mean_over_tasks_with_both_classes():
    nan = math.nan
    y = np.array([[1, 1, nan], [0, 1, nan], [1, nan, nan], [0, 1, nan]])
    logits = np.array([[3.0, 0, 0], [2.0, 0, 0], [1.0, 0, 0], [0.0, 0, 0]])
    result = score(logits, y, MULTI)
    assert result.value == pytest.approx(roc_auc_score(y[:, 0], logits[:, 0]))
    assert result.reason == "mean over 1 of 3 tasks: the others have 1 class or no labels"
    assert score(logits, np.ones((4, 3)), MULTI) == Score(None, "undefined", "1 class")


def test_multitask_accuracy_is_the_mean_over_labelled_tasks():
    task = Task("multitask", 2, num_tasks=2)
    result = score([[1.0, -1], [1.0, -1]], [[1, math.nan], [0, math.nan]], task)
    assert result == Score(0.5, "ok", "mean over 1 of 2 tasks: the others have no labels")


@pytest.mark.parametrize(
    ("logits", "y", "task"),
    [(np.zeros((3, 1)), [0, 1, 1], BINARY), (np.zeros((3, 2)), [0, 1], BINARY), (np.zeros((2, 3)), [0, 1], MULTI)],
)
def test_shapes_that_do_not_fit_are_refused(logits, y, task):
    with pytest.raises(ValueError, match="expected"):
        score(logits, y, task)


def test_the_mean_over_tasks_or_classes_does_not_depend_on_their_order():
    rng = np.random.default_rng(0)
    task = Task("multitask", 2, num_tasks=3, metric="rocauc")
    for _ in range(30):
        logits, y = rng.normal(size=(17, 3)), rng.integers(0, 2, (17, 3))
        y[:2] = [[0] * 3, [1] * 3]
        assert score(logits, y, task) == score(logits[:, [2, 1, 0]], y[:, [2, 1, 0]], task)


def test_equal_correlations_of_other_predictions_are_equal_to_the_bit():
    truth = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    one = np.array([1, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    many = np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 0])
    assert mcc(one, truth) == mcc(many, truth) == pytest.approx(1 / math.sqrt(21))
    assert mcc(1 - one, truth) == -mcc(one, truth)
