"""t-based confidence intervals over seeds, Welch's interval of a difference, and the minimum detectable effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum, isnan, sqrt

from harness.results.means import mean

LEVEL = 0.95
ALPHA = 0.05
POWER = 0.8


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a mean, or of a difference of means, in the unit of the values.

    Attributes:
        estimate: the mean or difference; None without values.
        low, high: the bounds; None where there is no interval, and ``reason`` says why.
        n: values, or pairs, behind it; ``degrees`` its degrees of freedom.
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
        """Whether there is an interval and zero lies outside of it."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    def times(self, factor: float) -> Interval:
        """The interval in a unit ``factor`` times smaller (100 for a fraction in percent)."""
        estimate, low, high = (None if v is None else factor * v for v in (self.estimate, self.low, self.high))
        return replace(self, estimate=estimate, low=low, high=high)


def t_quantile(degrees: float, probability: float) -> float:
    """The quantile of Student's t distribution; the degrees of freedom may be fractional."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def mean_interval(values: Sequence[float | None], level: float = LEVEL) -> Interval:
    """Mean ± t(n - 1) · s / √n over the values that are there.

    Exact for normal values at any n ≥ 2, where a bootstrap over three seeds has no more than ten distinct samples and
    covers far less than it says (see docs/statistics.md).

    Args:
        values: one per seed, None where there is none; the same for differences paired by seed.
    """
    present = [value for value in values if value is not None]
    n = len(present)
    if not n:
        return Interval(None, None, None, 0, level, reason="no values")
    centre = mean(present)
    if n == 1:
        return Interval(centre, None, None, 1, level, reason="one value; an interval needs at least 2")
    deviation = sqrt(fsum((value - centre) ** 2 for value in present) / (n - 1))
    if _nothing(deviation, centre):
        return Interval(centre, None, None, n, level, n - 1, "all values are equal, so that their spread says nothing")
    half = t_quantile(n - 1, (1 + level) / 2) * deviation / sqrt(n)
    return Interval(centre, centre - half, centre + half, n, level, n - 1)


def _nothing(deviation: float, scale: float) -> bool:
    """Whether a standard deviation is zero but for rounding."""
    return deviation <= 1e-12 * max(1.0, abs(scale))


@dataclass(frozen=True)
class Sample:
    """What is known of some values: their number, mean and sample standard deviation, None where that is unknown."""

    n: int
    mean: float
    deviation: float | None


def welch_interval(first: Sample, second: Sample, level: float = LEVEL) -> Interval:
    """The interval of ``first.mean - second.mean`` of two independent samples with variances of their own.

    Standard error √(s₁²/n₁ + s₂²/n₂), degrees of freedom by Welch and Satterthwaite (B. L. Welch, The generalization
    of Student's problem when several different population variances are involved, Biometrika 34, 1947).
    """
    difference = first.mean - second.mean
    n = min(first.n, second.n)
    if first.n < 2 or second.n < 2:
        return Interval(difference, None, None, n, level, reason="one run on a side; an interval needs at least 2 each")
    if first.deviation is None or second.deviation is None:
        return Interval(difference, None, None, n, level, reason="no spread is known on a side")
    shares = [sample.deviation**2 / sample.n for sample in (first, second) if sample.deviation is not None]
    if _nothing(sqrt(sum(shares)), max(abs(first.mean), abs(second.mean))):
        return Interval(difference, None, None, n, level, reason="both spreads are zero")
    degrees = sum(shares) ** 2 / (shares[0] ** 2 / (first.n - 1) + shares[1] ** 2 / (second.n - 1))
    half = t_quantile(degrees, (1 + level) / 2) * sqrt(sum(shares))
    return Interval(difference, difference - half, difference + half, n, level, degrees)


def detectable_effect(n: int, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The smallest true mean of n paired differences, in standard deviations of these differences, that a two-sided
    paired t-test at ``alpha`` finds with probability ``power``; None for n < 2.

    From the noncentral t distribution with n - 1 degrees of freedom and noncentrality d·√n (J. Cohen, Statistical
    Power Analysis for the Behavioral Sciences, 2nd ed. 1988, ch. 2).
    """
    if n < 2:
        return None
    from scipy.optimize import brentq

    return float(brentq(lambda effect: power_of(n, effect, alpha) - power, 0.0, 1000.0, xtol=1e-10))


def power_of(n: int, effect: float, alpha: float = ALPHA) -> float:
    """The probability that a two-sided paired t-test with n pairs finds an effect, given in standard deviations."""
    from scipy.special import nctdtr

    critical, shift = t_quantile(n - 1, 1 - alpha / 2), effect * sqrt(n)
    lower = float(nctdtr(n - 1, shift, -critical))
    return float(1 - nctdtr(n - 1, shift, critical)) + (0.0 if isnan(lower) else lower)  # NaN far out in the tail
