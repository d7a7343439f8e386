"""Statistics against SciPy, enumeration, printed tables and worked examples."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest
from demsar import AUC
from scipy import stats

from harness.results.statistics import (
    EXACT,
    Interval,
    Sample,
    compared,
    complete,
    critical_difference,
    detectable_effect,
    groups,
    holm,
    mean_interval,
    needed,
    permutation,
    power_of,
    ranking,
    welch_interval,
    wilcoxon,
)

CLOSE = pytest.approx


def test_an_interval_of_three_values_by_hand() -> None:
    """Mean 2, s 1, t(2) at 0.975 is 4.302653 in every table: 2 ± 4.302653 / √3."""
    found = mean_interval([1.0, 2.0, 3.0])
    half = 4.302652729911275 / sqrt(3)
    assert (found.estimate, found.low, found.high) == (2.0, CLOSE(2 - half, abs=1e-6), CLOSE(2 + half, abs=1e-6))
    assert (found.n, found.reason) == (3, "")


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_the_interval_of_paired_differences_is_that_of_the_paired_t_test(n: int) -> None:
    draw = np.random.default_rng(n)
    first, second = draw.normal(70, 3, n), draw.normal(68, 3, n)
    found = mean_interval(list(first - second))
    test = stats.ttest_rel(first, second)
    expected = test.confidence_interval(0.95)
    assert (found.low, found.high) == (CLOSE(expected.low, abs=1e-6), CLOSE(expected.high, abs=1e-6))
    assert found.excludes_zero == (test.pvalue < 0.05)


def test_missing_values_are_left_out_and_counted() -> None:
    assert mean_interval([1.0, None, 2.0, 3.0]) == mean_interval([1.0, 2.0, 3.0])
    assert mean_interval([None, None]) == Interval(None, None, None, 0, "no values")


def test_one_value_and_equal_values_have_no_interval() -> None:
    one = mean_interval([0.5])
    assert (one.estimate, one.low, one.high) == (0.5, None, None)
    assert "at least 2" in one.reason
    equal = mean_interval([0.1 + 0.2, 0.3, 0.3])
    assert equal.low is None
    assert "equal" in equal.reason
    assert not equal.excludes_zero


def test_an_interval_in_percent() -> None:
    found = mean_interval([0.01, 0.02, 0.03]).times(100)
    direct = mean_interval([1.0, 2.0, 3.0])
    assert (found.estimate, found.low, found.high) == CLOSE((direct.estimate, direct.low, direct.high))
    assert mean_interval([]).times(100).estimate is None


def test_welch_by_hand() -> None:
    """Variances 4 and 1, three runs each: standard error √(5/3), degrees (5/3)² / ((4/3)²/2 + (1/3)²/2) = 50/17."""
    found = welch_interval(Sample(3, 72.0, 2.0), Sample(3, 70.0, 1.0))
    half = stats.t.ppf(0.975, 50 / 17) * sqrt(5 / 3)
    assert (found.low, found.high) == (CLOSE(2 - half, abs=1e-6), CLOSE(2 + half, abs=1e-6))


@pytest.mark.parametrize(("n", "m"), [(2, 3), (3, 3), (5, 10)])
def test_welch_agrees_with_scipy(n: int, m: int) -> None:
    draw = np.random.default_rng(n)
    a, b = draw.normal(70, 3, n), draw.normal(68, 1, m)
    found = welch_interval(Sample(n, a.mean(), a.std(ddof=1)), Sample(m, b.mean(), b.std(ddof=1)))
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == (CLOSE(expected.low, abs=1e-6), CLOSE(expected.high, abs=1e-6))


def test_welch_needs_two_runs_and_a_spread_on_both_sides() -> None:
    assert "one run" in welch_interval(Sample(1, 1.0, None), Sample(3, 2.0, 0.1)).reason
    assert welch_interval(Sample(3, 1.0, None), Sample(3, 2.0, 0.1)).low is None
    assert "equal" in welch_interval(Sample(3, 1.0, 0.0), Sample(3, 2.0, 0.0)).reason
    one_sided = welch_interval(Sample(3, 1.0, 0.0), Sample(3, 2.0, 0.1))
    assert one_sided.high == CLOSE(-1 + stats.t.ppf(0.975, 2) * 0.1 / sqrt(3))


def test_power_agrees_with_published_values() -> None:
    """G*Power 3.1's example of a paired t-test: effect 0.5, 34 pairs, two-sided 0.05 give power 0.8077775."""
    assert power_of(34, 0.5) == CLOSE(0.8077775, abs=1e-6)
    assert power_of(34, 0.0) == CLOSE(0.05, abs=1e-6)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 10, 34, 100])
def test_the_detectable_effect_has_the_power_asked_for(n: int) -> None:
    effect = detectable_effect(n)
    assert effect is not None
    critical = stats.t.ppf(0.975, n - 1)
    assert stats.nct(n - 1, effect * sqrt(n)).sf(critical) == CLOSE(0.8, abs=1e-6)  # the other tail is below 1e-8


def test_one_seed_detects_nothing() -> None:
    assert detectable_effect(1) is None


def enumerated(values: list[float]) -> float:
    """The two-sided p-value of the sum under all sign patterns, by counting."""
    sums = [
        abs(sum(s * v for s, v in zip(signs, values, strict=True))) for signs in product((1, -1), repeat=len(values))
    ]
    return float(np.mean([found >= abs(sum(values)) - 1e-9 for found in sums]))


@pytest.mark.parametrize("n", [6, 7, 10, 14, 25])
def test_wilcoxon_agrees_with_scipy_without_ties(n: int) -> None:
    values = np.random.default_rng(n).normal(0.4, 1, n)
    assert wilcoxon(list(values)) == CLOSE(stats.wilcoxon(values, method="exact").pvalue, abs=1e-6)


def test_wilcoxon_of_the_smallest_kind_by_hand() -> None:
    """Six positive differences: only the two one-sided patterns of 64 are as extreme, 2/64."""
    assert wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == CLOSE(2 / 64)
    assert wilcoxon([-1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == CLOSE(4 / 64)


def test_wilcoxon_counts_ties_exactly() -> None:
    """Ranks 1.5, 1.5, 3, 4.5, 4.5, 6, 7; SciPy's exact distribution would take them for 1 to 7."""
    values = [-1.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0]
    assert wilcoxon(values) == CLOSE(enumerated([-1.5, 1.5, 3, 4.5, 4.5, 6, 7]), abs=1e-9)


def test_wilcoxon_on_demsars_example() -> None:
    """Demšar 2006, table 2: R- is 12 when the two zeros are split. Without them the ranks 1.5 and 5 are negative, so
    that R- is 6.5 of 78 for 12 data sets, and the difference is significant at 0.05 as in the paper."""
    differences = [round(b - a, 9) for a, b in zip(AUC["C4.5"], AUC["C4.5+m"], strict=True)]
    assert stats.wilcoxon(differences, zero_method="zsplit", method="approx").statistic == 12
    found = compared({"C4.5+m": differences}, wilcoxon)["C4.5+m"]
    assert found.n == 12
    ranks = stats.rankdata([abs(d) for d in differences if d])
    signs = [np.sign(d) for d in differences if d]
    assert sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign < 0) == 6.5
    assert found.p == CLOSE(enumerated([r * s for r, s in zip(ranks, signs, strict=True)]), abs=1e-9)
    assert found.p is not None
    assert found.p < 0.05


@pytest.mark.parametrize("n", [6, 8, 11])
def test_permutation_agrees_with_enumeration(n: int) -> None:
    values = list(np.random.default_rng(n).normal(0.5, 1, n))
    assert permutation(values) == CLOSE(enumerated(values), abs=1e-9)
    assert compared({"a": values}, permutation)["a"].effect == CLOSE(np.mean(values))


def test_permutation_on_darwins_maize() -> None:
    """Fisher, The Design of Experiments, section 21: 863 of 2^15 sign patterns have a total of 314 or more."""
    heights = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    assert sum(heights) == 314
    assert permutation(heights) == CLOSE(2 * 863 / 2**15, abs=1e-9)


def test_many_datasets_draw_from_a_fixed_seed() -> None:
    values = list(np.random.default_rng(1).normal(0.3, 1, EXACT + 8))
    first, second = permutation(values), permutation(values)
    assert first == second
    assert first == CLOSE(stats.ttest_1samp(values, 0).pvalue, abs=0.01)
    tied = [float(round(4 * v)) or 1.0 for v in values]
    assert wilcoxon(tied) == CLOSE(stats.wilcoxon(tied, method="approx").pvalue, abs=1e-9)


@pytest.mark.parametrize(("comparisons", "count"), [(1, 6), (2, 7), (3, 7), (5, 8), (15, 10), (18, 10)])
def test_how_many_datasets_a_level_needs(comparisons: int, count: int) -> None:
    assert needed(comparisons) == count
    assert 2.0 ** (1 - count) <= 0.05 / comparisons < 2.0 ** (2 - count)


@pytest.mark.parametrize("test", [wilcoxon, permutation])
def test_no_p_value_that_could_not_reach_the_level(test) -> None:
    found = compared({"a": [1.0, 2.0, 3.0, 4.0, 5.0], "b": [], "c": [0.0, 0.0, 1.0, 2.0]}, test)
    assert [(one.p, one.adjusted, one.n) for one in found.values()] == [
        (None, None, 5),
        (None, None, 0),
        (None, None, 2),
    ]
    assert found["a"].effect == 3.0
    assert found["a"].reason.endswith("no p-value below 0.188 is possible, at least 7 datasets are needed")


def test_holm_by_hand() -> None:
    """Holm's step-down: 0.01 · 4, 0.02 · 3, 0.03 · 2 raised to the one before, 0.9 · 1."""
    assert holm([0.03, 0.01, 0.9, 0.02]) == CLOSE([0.06, 0.04, 0.9, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_rejects_in_the_order_of_p() -> None:
    p = list(np.random.default_rng(0).uniform(0, 0.1, 12))
    adjusted = holm(p)
    order = np.argsort(p)
    rejected = 0
    for position, index in enumerate(order):  # the procedure as Holm words it
        if p[index] > 0.05 / (len(p) - position):
            break
        rejected += 1
    assert sum(a <= 0.05 for a in adjusted) == rejected
    assert sorted(adjusted) == [adjusted[i] for i in order]


def test_a_correction_withholds_what_it_puts_out_of_reach() -> None:
    """Six datasets reach 0.05 alone (2/64 = 0.031), but not as one of two (0.0625)."""
    six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert compared({"a": six}, wilcoxon)["a"].adjusted == CLOSE(2 / 64)
    assert "5 datasets with a difference and 1 comparison: no" in compared({"a": six[1:]}, wilcoxon)["a"].reason
    found = compared({"a": six, "b": six}, wilcoxon)
    assert found["a"].p is None
    assert "no p-value below 0.0625 is possible, at least 7 datasets are needed" in found["a"].reason


def test_a_later_step_of_holm_may_be_within_reach() -> None:
    found = compared({"a": [1.0] * 12, "b": [1.0] * 6}, permutation)
    assert (found["a"].adjusted, found["b"].adjusted) == (CLOSE(2 * 2**-11), CLOSE(2**-5))


def test_the_family_counts_tests_without_a_p_value() -> None:
    assert compared({"a": [1.0] * 12, "b": [1.0] * 3, "c": []}, permutation)["a"].adjusted == CLOSE(3 * 2**-11)


def test_groups_are_the_longest_runs_without_a_difference() -> None:
    ranks = {"a": 1.0, "b": 2.0, "c": 2.5, "d": 3.5, "e": 4.5}
    assert groups(ranks, 2.4) == (("a", "b", "c"), ("b", "c", "d"), ("c", "d", "e"))
    assert groups(ranks, 9.0) == (("a", "b", "c", "d", "e"),)
    assert groups(ranks, 0.1) == groups({}, 1.0) == ()


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
    """Section 3.2.2 prints 9.28 from the rounded ranks and without correction for ties."""
    found = ranking(AUC)
    assert 12 * 14 / (4 * 5) * (sum(rank**2 for rank in found.ranks.values()) - 4 * 25 / 4) == CLOSE(9.28, abs=0.01)
    expected = stats.friedmanchisquare(*AUC.values())
    assert (found.chi_square, found.p) == (CLOSE(expected.statistic, abs=1e-6), CLOSE(expected.pvalue, abs=1e-6))


def test_demsars_critical_differences() -> None:
    """Table 5 and section 3.2.2: q 2.569 for four classifiers gives 1.25 at 0.05."""
    assert critical_difference(4, 14) == CLOSE(1.25, abs=0.005)
    q = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for k, printed in enumerate(q, start=2):
        assert critical_difference(k, 6 * k * (k + 1)) * 6 == CLOSE(printed, abs=0.0011)


def test_demsars_groups() -> None:
    """At 0.10 C4.5 (3.143) differs from C4.5+m+cf (1.964) and C4.5+m (2.0) by more than 1.12; at 0.05 none does."""
    found = ranking(AUC)
    assert found.groups == (("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"),)
    assert groups(found.ranks, 1.12) == (("C4.5+m+cf", "C4.5+m", "C4.5+cf"), ("C4.5+cf", "C4.5"))


def test_friedman_agrees_with_scipy_with_and_without_ties() -> None:
    for seed, digits in ((0, 6), (1, 1)):
        data = np.random.default_rng(seed).uniform(size=(12, 5)).round(digits)
        found = ranking(dict(zip("abcde", data.T.tolist(), strict=True)))
        assert found.chi_square == CLOSE(stats.friedmanchisquare(*data.T).statistic, abs=1e-6)


def test_ties_share_their_mean_rank() -> None:
    scores = {"a": [0.9], "b": [0.7], "c": [0.9], "d": [0.8]}
    assert ranking(scores).ranks == {"a": 1.5, "b": 4.0, "c": 1.5, "d": 3.0}


def test_too_few_datasets_or_methods_have_no_friedman_test() -> None:
    two = ranking({"a": [3.0, 3.0], "b": [2.0, 2.0], "c": [1.0, 1.0]})
    assert two.p is None
    assert two.reason == "2 datasets: no p-value below 0.135 is possible, at least 3 are needed"
    assert (two.critical, two.groups) == (None, ())
    assert two.ranks == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert "3 methods" in ranking({"a": [1.0], "b": [2.0]}).reason
    assert "equal on every" in ranking({m: [1.0] * 5 for m in "abc"}).reason


def test_all_datasets_in_one_order_is_the_strongest_outcome() -> None:
    found = ranking({"a": [3.0] * 4, "b": [2.0] * 4, "c": [1.0] * 4})
    assert found.chi_square == CLOSE(8.0)


def test_nothing_to_rank() -> None:
    assert ranking({}).ranks == {}
    assert ranking({"a": [None, None], "b": [1.0, None]}).ranks == {"b": 1.0}


def test_a_method_that_lacks_a_value_is_left_out_and_an_empty_dataset_too() -> None:
    scores = {"a": [1.0, 2.0, None], "b": [1.0, None, None], "c": [3.0, 4.0, None], "d": [5.0, 6.0, 7.0]}
    assert complete(scores) == ({"a": [1.0, 2.0], "c": [3.0, 4.0], "d": [5.0, 6.0]}, (0, 1))
    assert ranking(scores).left_out == ("b",)
