"""Statistics over seeds and over datasets, on plain numbers. SciPy is imported by the functions that need it.

A result that cannot be had says why; no p-value is given that could not have fallen below the level, whatever the data.
``docs/statistics.md`` has the choices with their sources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, fsum, isclose, isnan, log2, sqrt

from harness.results.summary import Summary, mean

LEVEL = 0.95
ALPHA = 0.05
POWER = 0.8
EXACT = 20
"""Up to this many differences all sign patterns are enumerated (a million of them)."""
RESAMPLES = 99_999
"""Beyond it, so many are drawn, and the observed one counts as one more."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval at :data:`LEVEL` of a mean, or of a difference of means, in the unit of the values.

    Attributes:
        estimate: the mean or difference; None without values.
        low, high: the bounds; None without an interval, and ``reason`` says why.
        n: the number of values or pairs.
    """

    estimate: float | None
    low: float | None
    high: float | None
    n: int
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


def mean_interval(values: Sequence[float | None]) -> Interval:
    """Return mean ± t(n - 1) · s / √n over the values that are not None."""
    sample = Summary(tuple(values))
    n, centre, deviation = sample.n, sample.mean, sample.spread
    if centre is None:
        return Interval(None, None, None, 0, "no values")
    if deviation is None:
        return Interval(centre, None, None, 1, "one value; an interval needs at least 2")
    return _around(centre, t_quantile(n - 1, (1 + LEVEL) / 2) * deviation / sqrt(n), n)


def welch_interval(first: Sample, second: Sample) -> Interval:
    """Return the interval of ``first.mean - second.mean`` for independent samples with unequal variances.

    Standard error √(s₁²/n₁ + s₂²/n₂), degrees of freedom by Welch and Satterthwaite.
    """
    difference, n = first.mean - second.mean, min(first.n, second.n)
    if n < 2 or first.deviation is None or second.deviation is None:
        return Interval(difference, None, None, n, "one run on a side; an interval needs at least 2 each")
    shares = first.deviation**2 / first.n, second.deviation**2 / second.n
    error = sqrt(sum(shares))
    weights = shares[0] ** 2 / (first.n - 1) + shares[1] ** 2 / (second.n - 1)
    half = t_quantile(error**4 / weights, (1 + LEVEL) / 2) * error if weights else 0.0
    return _around(difference, half, n)


def _around(centre: float, half: float, n: int) -> Interval:
    """Return an interval; none where the values are equal but for rounding."""
    if half <= 1e-12 * max(1.0, abs(centre)):
        return Interval(centre, None, None, n, "all values are equal, so that their spread says nothing")
    return Interval(centre, centre - half, centre + half, n)


def t_quantile(degrees: float, probability: float) -> float:
    """Return a quantile of Student's t distribution; the degrees of freedom may be fractional."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def detectable_effect(n: int) -> float | None:
    """Return the smallest true mean of n paired differences that a two-sided paired t-test at :data:`ALPHA` finds with
    probability :data:`POWER`, in standard deviations of the differences; None for n < 2."""
    if n < 2:
        return None
    from scipy.optimize import brentq

    return float(brentq(lambda effect: power_of(n, effect) - POWER, 0.0, 1000.0, xtol=1e-10))


def power_of(n: int, effect: float) -> float:
    """Return the power of a two-sided paired t-test with n pairs for an effect in standard deviations: noncentral t
    with n - 1 degrees of freedom and noncentrality d·√n."""
    from scipy.special import nctdtr

    critical, shift = t_quantile(n - 1, 1 - ALPHA / 2), effect * sqrt(n)
    lower = float(nctdtr(n - 1, shift, -critical))
    return float(1 - nctdtr(n - 1, shift, critical)) + (0.0 if isnan(lower) else lower)  # NaN far out in the tail


@dataclass(frozen=True)
class TestResult:
    """A two-sided test of paired differences, as one of several comparisons.

    Attributes:
        n: the number of differences other than zero; ``effect``: the mean of all differences.
        p: the p-value; ``adjusted``: the p-value after Holm's correction; None with a ``reason`` if there is none.
    """

    __test__ = False  # for pytest, which takes the name for a test class

    n: int
    effect: float | None
    p: float | None = None
    adjusted: float | None = None
    reason: str = ""


def compared(
    differences: Mapping[str, Sequence[float]], test: Callable[[Sequence[float]], float]
) -> dict[str, TestResult]:
    """Test each method's differences other than zero, with Holm's correction over the methods.

    The correction counts every method, also one without a p-value (as if it were 1), so that it does not depend on the
    outcome. A p-value that could not have reached the level after correction is withheld.
    """
    present = {method: [value for value in values if value != 0] for method, values in differences.items()}
    smallest = [min(1.0, 2.0 ** (1 - len(values))) for values in present.values()]
    p_values = [test(v) if least <= ALPHA else 1.0 for v, least in zip(present.values(), smallest, strict=True)]
    results = {}
    for method, least, p, adjusted in zip(present, holm(smallest), p_values, holm(p_values), strict=True):
        n, values = len(present[method]), differences[method]
        result = TestResult(n, mean(values) if values else None)
        if least <= ALPHA or isclose(least, ALPHA):
            results[method] = replace(result, p=p, adjusted=adjusted)
        else:
            count = f"{len(present)} comparison{'s' if len(present) > 1 else ''}"
            reason = f"{datasets_text(n)} with a difference and {count}: no p-value below {least:.3g} is possible, "
            reason += f"at least {needed(len(present))} datasets are needed"
            results[method] = replace(result, reason=reason)
    return results


def needed(comparisons: int) -> int:
    """Return the smallest n with 2 · 2⁻ⁿ ≤ ALPHA / comparisons: fewer differences cannot reach the level."""
    return ceil(1 + log2(comparisons / ALPHA) - 1e-9)


def datasets_text(count: int) -> str:
    """Return ``1 dataset`` or ``5 datasets``."""
    return "1 dataset" if count == 1 else f"{count} datasets"


def wilcoxon(differences: Sequence[float]) -> float:
    """Return the p-value of Wilcoxon's signed-rank test of differences other than zero; ties share their mean rank.

    Exact up to :data:`EXACT` differences; beyond as SciPy, whose exact distribution is that without ties.
    """
    from scipy import stats

    if len(differences) > EXACT:
        return float(stats.wilcoxon(differences).pvalue)
    ranks = stats.rankdata([abs(difference) for difference in differences])
    signed = zip(ranks, differences, strict=True)
    return permutation([float(rank) if difference > 0 else -float(rank) for rank, difference in signed])


def permutation(differences: Sequence[float]) -> float:
    """Return the p-value of the paired permutation test of the mean difference: every sign pattern is equally likely.

    Exact up to :data:`EXACT` differences; beyond, :data:`RESAMPLES` patterns from a fixed seed. Not by SciPy's
    ``permutation_test``, which takes sums that differ by rounding alone for different ones.
    """
    import numpy as np

    limit = abs(fsum(differences)) - 1e-9 * fsum(map(abs, differences))
    if len(differences) <= EXACT:
        sums = np.zeros(1)
        for value in differences:
            sums = np.concatenate((sums + value, sums - value))
        return float(np.mean(np.abs(sums) >= limit))
    signs = np.random.default_rng(0).choice((-1.0, 1.0), (RESAMPLES, len(differences)))
    return float((np.sum(np.abs(signs @ np.asarray(differences)) >= limit) + 1) / (RESAMPLES + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's step-down procedure, in the order of the given ones."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, floor = [0.0] * len(p_values), 0.0
    for position, index in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - position) * p_values[index]))
        adjusted[index] = floor
    return adjusted


@dataclass(frozen=True)
class Ranking:
    """Average ranks of methods across datasets, Friedman's test, and the groups that Nemenyi's does not tell apart.

    Attributes:
        ranks: method -> average rank, best first; 1 is best, ties share their mean rank.
        datasets: positions of the datasets ranked on; ``left_out``: methods that lack a value there.
        chi_square, p: Friedman's test that all rank alike, corrected for ties; None with a ``reason``.
        critical: Nemenyi's critical difference, None without ``p``.
        groups: the bars of the critical-difference diagram: runs of methods within the critical difference.
    """

    ranks: Mapping[str, float]
    datasets: tuple[int, ...]
    left_out: tuple[str, ...] = ()
    chi_square: float | None = None
    p: float | None = None
    critical: float | None = None
    groups: tuple[tuple[str, ...], ...] = ()
    reason: str = ""


def ranking(scores: Mapping[str, Sequence[float | None]]) -> Ranking:
    """Rank the methods on the datasets where all of them have a value; see :func:`complete`.

    Args:
        scores: method -> seed means of one metric on splits of one kind, in one order of datasets; None where there is
            none.
    """
    from scipy import stats

    table, kept = complete(scores)
    columns = list(zip(*table.values(), strict=True))
    ranked = [[float(rank) for rank in stats.rankdata([-value for value in column])] for column in columns]
    means = {m: sum(row[i] for row in ranked) / len(ranked) for i, m in enumerate(table)} if ranked else {}
    ranks = dict(sorted(means.items(), key=lambda item: item[1]))
    found = Ranking(ranks, kept, tuple(method for method in scores if method not in table))
    reason = _too_few(len(ranks), len(ranked))
    if not reason and all(len(set(row)) == 1 for row in ranked):
        reason = "all methods are equal on every dataset"
    if reason:
        return replace(found, reason=reason)
    chi, p = map(float, stats.friedmanchisquare(*zip(*ranked, strict=True)))
    critical = critical_difference(len(ranks), len(ranked))
    return replace(found, chi_square=chi, p=p, critical=critical, groups=groups(ranks, critical))


def complete(scores: Mapping[str, Sequence[float | None]]) -> tuple[dict[str, list[float]], tuple[int, ...]]:
    """Leave out methods and datasets until no value is missing; return the scores and the positions of the datasets.

    The one that lacks the largest share of its values goes first, methods before datasets in a tie, so that one method
    that failed somewhere costs no dataset, and one dataset that has not run costs no method.
    """
    methods, kept = list(scores), list(range(max((len(values) for values in scores.values()), default=0)))
    while methods and kept:
        by_method = [sum(scores[m][d] is None for d in kept) / len(kept) for m in methods]
        by_dataset = [sum(scores[m][d] is None for m in methods) / len(methods) for d in kept]
        worst = max(*by_method, *by_dataset)
        if not worst:
            break
        if worst in by_method:
            methods.pop(by_method.index(worst))
        else:
            kept.pop(by_dataset.index(worst))
    return {m: [value for d in kept if (value := scores[m][d]) is not None] for m in methods}, tuple(kept)


def _too_few(methods: int, datasets: int) -> str:
    """Say why Friedman's test could not reach the level, whatever the ranks; empty if it could."""
    from scipy.special import chdtrc

    if methods < 3:
        return "at least 3 methods are needed"
    enough = next(n for n in range(2, 100) if chdtrc(methods - 1, n * (methods - 1)) <= ALPHA)
    if datasets >= enough:
        return ""
    smallest = chdtrc(methods - 1, datasets * (methods - 1))
    return f"{datasets_text(datasets)}: no p-value below {smallest:.3g} is possible, at least {enough} are needed"


def critical_difference(methods: int, datasets: int) -> float:
    """Return Nemenyi's critical difference of average ranks, q · √(k(k + 1) / 6N), q the quantile of the studentized
    range at infinite degrees of freedom over √2."""
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - ALPHA, methods, float("inf"))) / sqrt(2)
    return q * sqrt(methods * (methods + 1) / (6 * datasets))


def groups(ranks: Mapping[str, float], critical: float) -> tuple[tuple[str, ...], ...]:
    """Return the longest runs of two or more methods, best first, whose ranks differ by less than the critical one."""
    order = list(ranks)
    runs = [tuple(m for m in order[i:] if ranks[m] - ranks[first] < critical) for i, first in enumerate(order)]
    pairs = zip([(), *runs], runs, strict=False)
    return tuple(run for before, run in pairs if len(run) > 1 and run[-1] not in before)
