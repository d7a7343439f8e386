"""t-based confidence intervals over seeds, Welch's interval of a difference, and the minimum detectable effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, sqrt

from harness.results.summary import Summary

LEVEL = 0.95
ALPHA = 0.05
POWER = 0.8


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a mean, or of a difference of means, in the unit of the values.

    Attributes:
        estimate: the mean or difference; None without values.
        low, high: the bounds; None without an interval, and ``reason`` says why.
        n: the number of values or pairs; ``degrees``: degrees of freedom.
        level: e.g. 0.95.
    """

    estimate: float | None
    low: float | None
    high: float | None
    n: int
    level: float = LEVEL
    degrees: float | None = None
    reason: str = ""

    @property
    def excludes_zero(self) -> bool:
        """True if there is an interval and zero lies outside it."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    def times(self, factor: float) -> Interval:
        """Scale the interval, e.g. by 100 from a fraction to percent."""
        estimate, low, high = (None if v is None else factor * v for v in (self.estimate, self.low, self.high))
        return replace(self, estimate=estimate, low=low, high=high)


@dataclass(frozen=True)
class Sample:
    """The size, mean and sample standard deviation of some values; ``deviation`` is None where it is unknown."""

    n: int
    mean: float
    deviation: float | None


def t_quantile(degrees: float, probability: float) -> float:
    """Return a quantile of Student's t distribution; the degrees of freedom may be fractional."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def mean_interval(values: Sequence[float | None], level: float = LEVEL) -> Interval:
    """Return mean ± t(n - 1) · s / √n over the values that are not None.

    Exact for normal values at any n ≥ 2, where a bootstrap over three seeds has no more than ten distinct samples and
    covers far less than it says (see docs/statistics.md).
    """
    sample = Summary(tuple(values))
    n, centre, deviation = sample.n, sample.mean, sample.spread
    if centre is None:
        return Interval(None, None, None, 0, level, reason="no values")
    if deviation is None:
        return Interval(centre, None, None, 1, level, reason="one value; an interval needs at least 2")
    if _is_zero(deviation, centre):
        return Interval(centre, None, None, n, level, n - 1, "all values are equal, so that their spread says nothing")
    half = t_quantile(n - 1, (1 + level) / 2) * deviation / sqrt(n)
    return Interval(centre, centre - half, centre + half, n, level, n - 1)


def welch_interval(first: Sample, second: Sample, level: float = LEVEL) -> Interval:
    """Return the interval of ``first.mean - second.mean`` for independent samples with unequal variances.

    Standard error √(s₁²/n₁ + s₂²/n₂), degrees of freedom by Welch and Satterthwaite (B. L. Welch, The generalization
    of Student's problem when several different population variances are involved, Biometrika 34, 1947).
    """
    difference = first.mean - second.mean
    n = min(first.n, second.n)
    if n < 2:
        return Interval(difference, None, None, n, level, reason="one run on a side; an interval needs at least 2 each")
    if first.deviation is None or second.deviation is None:
        return Interval(difference, None, None, n, level, reason="no spread is known on a side")
    shares = first.deviation**2 / first.n, second.deviation**2 / second.n
    error = sqrt(sum(shares))
    if _is_zero(error, max(abs(first.mean), abs(second.mean))):
        return Interval(difference, None, None, n, level, reason="both spreads are zero")
    degrees = error**4 / (shares[0] ** 2 / (first.n - 1) + shares[1] ** 2 / (second.n - 1))
    half = t_quantile(degrees, (1 + level) / 2) * error
    return Interval(difference, difference - half, difference + half, n, level, degrees)


def _is_zero(deviation: float, scale: float) -> bool:
    """Return True if a standard deviation is zero up to rounding."""
    return deviation <= 1e-12 * max(1.0, abs(scale))


def detectable_effect(n: int, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """Return the smallest true mean of n paired differences that a two-sided paired t-test at ``alpha`` finds with
    probability ``power``, in standard deviations of the differences; None for n < 2.

    From the noncentral t distribution with n - 1 degrees of freedom and noncentrality d·√n (J. Cohen, Statistical
    Power Analysis for the Behavioral Sciences, 2nd ed. 1988, ch. 2).
    """
    if n < 2:
        return None
    from scipy.optimize import brentq

    return float(brentq(lambda effect: power_of(n, effect, alpha) - power, 0.0, 1000.0, xtol=1e-10))


def power_of(n: int, effect: float, alpha: float = ALPHA) -> float:
    """Return the power of a two-sided paired t-test with n pairs for an effect in standard deviations."""
    from scipy.special import nctdtr

    critical, shift = t_quantile(n - 1, 1 - alpha / 2), effect * sqrt(n)
    lower = float(nctdtr(n - 1, shift, -critical))
    return float(1 - nctdtr(n - 1, shift, critical)) + (0.0 if isnan(lower) else lower)  # NaN far out in the tail
