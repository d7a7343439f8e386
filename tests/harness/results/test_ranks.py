"""Ranks, Friedman's test, Nemenyi's critical difference and records, on Demšar's worked example."""

from __future__ import annotations

import numpy as np
import pytest
from demsar import AUC
from scipy import stats

from harness.results.ranks import WinTieLoss, complete, critical_difference, dataset_ranks, friedman, ranking, records

CLOSE = pytest.approx


def test_demsars_average_ranks() -> None:
    found = ranking(AUC)
    assert {name: round(rank, 3) for name, rank in found.ranks.items()} == {
        "C4.5+m+cf": 1.964,
        "C4.5+m": 2.0,
        "C4.5+cf": 2.893,
        "C4.5": 3.143,
    }
    assert list(found.ranks) == ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]


def test_demsars_friedman_test() -> None:
    """Section 3.2.2 prints 9.28 and 3.69 from the rounded ranks and without correction for ties."""
    ranks = np.array([dataset_ranks(column) for column in zip(*AUC.values(), strict=True)])
    uncorrected = 12 * 14 / (4 * 5) * (sum(ranks.mean(0) ** 2) - 4 * 25 / 4)
    assert uncorrected == CLOSE(9.28, abs=0.01)
    assert 13 * uncorrected / (14 * 3 - uncorrected) == CLOSE(3.69, abs=0.01)
    found = friedman(ranks.tolist())
    expected = stats.friedmanchisquare(*AUC.values())
    assert (found.chi_square, found.p) == (CLOSE(expected.statistic, abs=1e-6), CLOSE(expected.pvalue, abs=1e-6))
    assert found.f == CLOSE(13 * found.chi_square / (42 - found.chi_square))
    assert found.f_p == CLOSE(stats.f.sf(found.f, 3, 39), abs=1e-6)


def test_demsars_critical_differences() -> None:
    """Table 5 and section 3.2.2: q 2.569 and 2.291 for four classifiers give 1.25 at 0.05 and 1.12 at 0.10."""
    assert critical_difference(4, 14) == CLOSE(1.25, abs=0.005)
    assert critical_difference(4, 14, 0.10) == CLOSE(1.12, abs=0.005)
    q = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for k, printed in enumerate(q, start=2):
        assert critical_difference(k, 6 * k * (k + 1)) * 6 == CLOSE(printed, abs=0.0011)


def test_demsars_groups() -> None:
    """At 0.10 C4.5 (3.143) differs from C4.5+m+cf (1.964) and C4.5+m (2.0) by more than 1.12; at 0.05 none does."""
    assert ranking(AUC).groups == (("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"),)
    found = ranking(AUC, alpha=0.10)
    assert found.groups == (("C4.5+m+cf", "C4.5+m", "C4.5+cf"), ("C4.5+cf", "C4.5"))


def test_friedman_agrees_with_scipy_with_and_without_ties() -> None:
    for seed, digits in ((0, 6), (1, 1)):
        data = np.random.default_rng(seed).uniform(size=(12, 5)).round(digits)
        found = friedman([dataset_ranks(list(row)) for row in data])
        assert found.chi_square == CLOSE(stats.friedmanchisquare(*data.T).statistic, abs=1e-6)


def test_ties_share_their_mean_rank_and_direction_counts() -> None:
    assert dataset_ranks([0.9, 0.7, 0.9, 0.8]) == [1.5, 4.0, 1.5, 3.0]
    assert dataset_ranks([0.9, 0.7, 0.9, 0.8], higher_is_better=False) == [3.5, 1.0, 3.5, 2.0]


def test_too_few_datasets_or_methods_have_no_friedman_test() -> None:
    two = ranking({"a": [3.0, 3.0], "b": [2.0, 2.0], "c": [1.0, 1.0]})
    assert two.friedman.p is None
    assert two.friedman.reason == "2 datasets: no p-value below 0.135 is possible, at least 3 are needed"
    assert (two.critical, two.groups) == (None, ())
    assert two.ranks == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert "3 methods" in ranking({"a": [1.0], "b": [2.0]}).friedman.reason
    assert "equal on every" in ranking({m: [1.0] * 5 for m in "abc"}).friedman.reason


def test_all_datasets_in_one_order_is_the_strongest_outcome() -> None:
    found = ranking({"a": [3.0] * 4, "b": [2.0] * 4, "c": [1.0] * 4})
    assert found.friedman.chi_square == CLOSE(8.0)
    assert (found.friedman.f, found.friedman.f_p) == (None, 0.0)


def test_nothing_to_rank() -> None:
    assert ranking({}).ranks == {}
    assert ranking({"a": [None, None], "b": [1.0, None]}).ranks == {"b": 1.0}


def test_a_method_that_lacks_a_value_is_left_out_and_an_empty_dataset_too() -> None:
    scores = {"a": [1.0, 2.0, None], "b": [1.0, None, None], "c": [3.0, 4.0, None], "d": [5.0, 6.0, 7.0]}
    assert complete(scores) == ({"a": [1.0, 2.0], "c": [3.0, 4.0], "d": [5.0, 6.0]}, (0, 1))
    assert ranking(scores).left_out == ("b",)


def test_groups_by_wilcoxon_need_enough_datasets() -> None:
    few = ranking({"a": [3.0] * 5, "b": [2.0] * 5, "c": [1.0] * 5})
    assert few.wilcoxon_groups is None
    assert few.wilcoxon_reason == "pairwise Wilcoxon tests of 3 methods need at least 7 datasets"
    draw = np.random.default_rng(0)
    good, near, bad = draw.normal(80, 1, 12), draw.normal(80, 1, 12), draw.normal(60, 1, 12)
    many = ranking({"good": list(good), "near": list(near), "bad": list(bad)})
    assert many.wilcoxon_groups is not None
    assert [set(group) for group in many.wilcoxon_groups] == [{"good", "near"}]


def test_records_by_hand_and_only_where_both_have_a_value() -> None:
    scores = {"a": [1.0, 2.0, 3.0, None], "b": [1.0, 1.0, 4.0, 9.0], "c": [None, None, None, 1.0]}
    found = records(scores)
    assert found["a", "b"] == WinTieLoss(1, 1, 1)
    assert found["b", "a"] == WinTieLoss(1, 1, 1)
    assert found["a", "c"].n == 0
    assert found["b", "c"] == WinTieLoss(1, 0, 0)
    assert records(scores, higher_is_better=False)["b", "c"] == WinTieLoss(0, 0, 1)


def test_demsars_wins_against_c45() -> None:
    """Table 2: C4.5+m is better on 10 data sets, equal on 2 and worse on 2."""
    assert records(AUC)["C4.5+m", "C4.5"] == WinTieLoss(10, 2, 2)
