"""Wilcoxon, paired permutation and Holm against SciPy, enumeration and worked examples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from demsar import AUC
from scipy import stats

from harness.results.paired import (
    EXACT,
    TestResult,
    corrected,
    holm,
    needed,
    ordered_groups,
    permutation,
    wilcoxon,
)

CLOSE = pytest.approx


def enumerated(values: list[float]) -> float:
    """The two-sided p-value of the sum under all sign patterns, by counting."""
    sums = [
        abs(sum(s * v for s, v in zip(signs, values, strict=True))) for signs in product((1, -1), repeat=len(values))
    ]
    return float(np.mean([found >= abs(sum(values)) - 1e-9 for found in sums]))


@pytest.mark.parametrize("n", [6, 7, 10, 14, 25])
def test_wilcoxon_agrees_with_scipy_without_ties(n: int) -> None:
    values = np.random.default_rng(n).normal(0.4, 1, n)
    assert wilcoxon(list(values)).p == CLOSE(stats.wilcoxon(values, method="exact").pvalue, abs=1e-6)


def test_wilcoxon_of_the_smallest_kind_by_hand() -> None:
    """Six positive differences: only the two one-sided patterns of 64 are as extreme, 2/64."""
    found = wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert found.p == CLOSE(2 / 64)
    assert found.smallest == 2 / 64
    assert wilcoxon([-1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).p == CLOSE(4 / 64)


def test_wilcoxon_counts_ties_exactly() -> None:
    """Ranks 1.5, 1.5, 3, 4.5, 4.5, 6, 7; SciPy's exact distribution would take them for 1 to 7."""
    values = [-1.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0]
    assert wilcoxon(values).p == CLOSE(enumerated([-1.5, 1.5, 3, 4.5, 4.5, 6, 7]), abs=1e-9)


def test_wilcoxon_on_demsars_example() -> None:
    """Demšar 2006, table 2: R- is 12 when the two zeros are split. Without them the ranks 1.5 and 5 are negative, so
    that R- is 6.5 of 78 for 12 data sets, and the difference is significant at 0.05 as in the paper."""
    differences = [round(b - a, 9) for a, b in zip(AUC["C4.5"], AUC["C4.5+m"], strict=True)]
    assert stats.wilcoxon(differences, zero_method="zsplit", method="approx").statistic == 12
    found = wilcoxon(differences)
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
    assert permutation(values).p == CLOSE(enumerated(values), abs=1e-9)
    assert permutation(values).effect == CLOSE(np.mean(values))


@pytest.mark.parametrize("n", [7, 12])
def test_permutation_agrees_with_scipy(n: int) -> None:
    values = np.random.default_rng(n).normal(0.5, 1, n).round(1)
    found = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert permutation(list(values)).p == CLOSE(found.pvalue, abs=1e-6)


def test_permutation_on_darwins_maize() -> None:
    """Fisher, The Design of Experiments, section 21: 863 of 2^15 sign patterns have a total of 314 or more."""
    heights = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    assert sum(heights) == 314
    assert permutation(heights).p == CLOSE(2 * 863 / 2**15, abs=1e-9)


def test_many_datasets_draw_from_a_fixed_seed() -> None:
    values = list(np.random.default_rng(1).normal(0.3, 1, EXACT + 8))
    first, second = permutation(values), permutation(values)
    assert first == second
    assert first.p == CLOSE(stats.ttest_1samp(values, 0).pvalue, abs=0.01)
    tied = [float(round(4 * v)) or 1.0 for v in values]
    assert wilcoxon(tied).p == CLOSE(stats.wilcoxon(tied, method="approx").pvalue, abs=1e-9)


@pytest.mark.parametrize(("comparisons", "count"), [(1, 6), (2, 7), (3, 7), (5, 8), (15, 10), (18, 10)])
def test_how_many_datasets_a_level_needs(comparisons: int, count: int) -> None:
    assert needed(comparisons) == count
    assert 2.0 ** (1 - count) <= 0.05 / comparisons < 2.0 ** (2 - count)


@pytest.mark.parametrize("test", [wilcoxon, permutation])
def test_no_p_value_that_could_not_reach_the_level(test) -> None:
    found = test([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.p is None
    assert found.effect == 3.0
    assert found.reason == "5 datasets: no p-value below 0.0625 is possible, at least 6 are needed"
    assert test([]).reason == "no dataset has both values"
    zeros = test([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert zeros.reason.startswith("5 datasets with a difference (2 without)")


def test_holm_by_hand() -> None:
    """Holm's step-down: 0.01 · 4, 0.02 · 3, 0.03 · 2 raised to the one before, 0.9 · 1."""
    assert holm([0.03, 0.01, 0.9, 0.02]) == CLOSE([0.06, 0.04, 0.9, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_on_a_published_example() -> None:
    """Demšar 2006, section 3.2.2: three classifiers against C4.5 have p 0.016, 0.019 and 0.607 by average ranks, and
    Holm's procedure rejects the first two at 0.05 (0.016 < 0.05 / 3, 0.019 < 0.05 / 2, 0.607 > 0.05)."""
    adjusted = holm([0.016, 0.019, 0.607])
    assert adjusted == CLOSE([0.048, 0.048, 0.607], abs=1e-6)


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


def result(n: int, p: float | None) -> TestResult:
    return TestResult("t", n, 1.0, p, smallest=2.0 ** (1 - n), needed=6, reason="" if p is not None else "too few")


def test_a_correction_withholds_what_it_puts_out_of_reach() -> None:
    """Six datasets reach 0.05 alone (2/64 = 0.031), but not as one of two (0.0625)."""
    alone = corrected({"a": result(6, 0.03125)})
    assert alone["a"].adjusted == 0.03125
    found = corrected({"a": result(6, 0.03125), "b": result(6, 0.03125)})
    assert found["a"].p is None
    assert "no p-value below 0.0625 is possible, at least 7 are needed" in found["a"].reason


def test_a_later_step_of_holm_may_be_within_reach() -> None:
    found = corrected({"a": result(12, 0.001), "b": result(6, 0.03125)})
    assert (found["a"].adjusted, found["b"].adjusted) == (CLOSE(0.002), CLOSE(0.03125))


def test_the_family_counts_tests_without_a_p_value() -> None:
    found = corrected({"a": result(12, 0.01), "b": result(3, None), "c": result(0, None)})
    assert found["a"].adjusted == CLOSE(0.03)
    assert found["b"].reason == "too few (7 with Holm's correction over 3 comparisons)"


def test_groups_are_the_longest_runs_without_a_difference() -> None:
    differ = {frozenset(pair): True for pair in ("ad", "ae", "be")}
    assert ordered_groups("abcde", differ) == [("a", "b", "c"), ("b", "c", "d"), ("c", "d", "e")]
    assert ordered_groups("abc", {}) == [("a", "b", "c")]
    assert ordered_groups("ab", {frozenset("ab"): True}) == []
    assert ordered_groups("", {}) == []
