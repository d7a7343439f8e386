"""Intervals and power against SciPy, tables and hand computation."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from harness.results.intervals import (
    Interval,
    Sample,
    detectable_effect,
    mean_interval,
    power_of,
    t_quantile,
    welch_interval,
)

CLOSE = pytest.approx


def test_an_interval_of_three_values_by_hand() -> None:
    """Mean 2, s 1, t(2) at 0.975 is 4.302653 in every table: 2 ± 4.302653 / √3."""
    found = mean_interval([1.0, 2.0, 3.0])
    half = 4.302652729911275 / sqrt(3)
    assert (found.estimate, found.low, found.high) == (2.0, CLOSE(2 - half, abs=1e-6), CLOSE(2 + half, abs=1e-6))
    assert (found.n, found.degrees, found.level, found.reason) == (3, 2, 0.95, "")


@pytest.mark.parametrize("n", [2, 3, 5, 10, 40])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_intervals_agree_with_scipy(n: int, level: float) -> None:
    values = np.random.default_rng(n).normal(0.7, 0.05, n)
    found = mean_interval(list(values), level)
    low, high = stats.t.interval(level, n - 1, values.mean(), stats.sem(values))
    assert (found.low, found.high) == (CLOSE(low, abs=1e-6), CLOSE(high, abs=1e-6))


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
    assert mean_interval([None, None]) == Interval(None, None, None, 0, reason="no values")


def test_one_value_and_equal_values_have_no_interval() -> None:
    one = mean_interval([0.5])
    assert (one.estimate, one.low, one.high) == (0.5, None, None)
    assert "at least 2" in one.reason
    equal = mean_interval([0.1 + 0.2, 0.3, 0.3])
    assert equal.low is None
    assert "equal" in equal.reason
    assert not equal.excludes_zero


def test_zero_outside_of_an_interval() -> None:
    assert mean_interval([1.0, 1.1, 1.2]).excludes_zero
    assert not mean_interval([-1.0, 1.0, 0.1]).excludes_zero


def test_an_interval_in_percent() -> None:
    found = mean_interval([0.01, 0.02, 0.03]).times(100)
    direct = mean_interval([1.0, 2.0, 3.0])
    assert (found.estimate, found.low, found.high) == CLOSE((direct.estimate, direct.low, direct.high))
    assert mean_interval([]).times(100).estimate is None


def test_welch_by_hand() -> None:
    """Variances 4 and 1, three runs each: standard error √(5/3), degrees (5/3)² / ((4/3)²/2 + (1/3)²/2) = 50/17."""
    found = welch_interval(Sample(3, 72.0, 2.0), Sample(3, 70.0, 1.0))
    assert found.degrees == CLOSE(50 / 17)
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
    assert "no spread is known" in welch_interval(Sample(3, 1.0, None), Sample(3, 2.0, 0.1)).reason
    assert "zero" in welch_interval(Sample(3, 1.0, 0.0), Sample(3, 2.0, 0.0)).reason
    assert welch_interval(Sample(3, 1.0, 0.0), Sample(3, 2.0, 0.1)).degrees == CLOSE(2)


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


def test_the_detectable_effect_of_three_seeds_by_simulation() -> None:
    effect = detectable_effect(3)
    assert effect == CLOSE(3.26, abs=0.01)
    draws = np.random.default_rng(0).normal(effect, 1, (200_000, 3))
    found = abs(draws.mean(1)) / (draws.std(1, ddof=1) / sqrt(3)) > t_quantile(2, 0.975)
    assert found.mean() == CLOSE(0.8, abs=0.005)


def test_one_seed_detects_nothing() -> None:
    assert detectable_effect(1) is None
