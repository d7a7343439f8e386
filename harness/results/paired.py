"""Tests of one method against another across datasets: Wilcoxon's signed ranks, paired permutation, Holm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, fsum, isclose, log2

from harness.results.intervals import ALPHA
from harness.results.summary import mean

EXACT = 20
"""Up to this many differences all sign patterns are enumerated (a million of them)."""
RESAMPLES = 99_999
"""Beyond it, so many are drawn, and the observed one counts as one more."""


@dataclass(frozen=True)
class TestResult:
    """A two-sided test of n paired differences.

    Attributes:
        test: its name; ``n``: the number of differences other than zero; ``effect``: the mean of all differences.
        p: the p-value; ``adjusted``: the p-value after Holm's correction; None with a ``reason`` if there is none.
        smallest: the smallest p-value that n differences can give.
        needed: the number of differences from which the smallest p-value is below the level, after correction.
    """

    __test__ = False  # for pytest, which takes the name for a test class

    test: str
    n: int
    effect: float | None
    p: float | None = None
    adjusted: float | None = None
    smallest: float = 1.0
    needed: int = 0
    reason: str = ""


def needed(comparisons: int = 1, alpha: float = ALPHA) -> int:
    """Return the smallest n with 2 · 2⁻ⁿ ≤ alpha / comparisons: fewer differences cannot reach the level.

    6 for one comparison at 0.05; 10 for the first step of Holm over 15.
    """
    return ceil(1 + log2(comparisons / alpha) - 1e-9)


def wilcoxon(differences: Sequence[float], alpha: float = ALPHA) -> TestResult:
    """Run the signed-rank test of F. Wilcoxon, Individual comparisons by ranking methods, Biometrics Bulletin 1, 1945,
    across datasets as in J. Demšar, JMLR 7, 2006, section 3.1.3.

    Differences of zero are left out and ties share their mean rank. Exact, with ties up to :data:`EXACT` differences
    and without up to 50; beyond, by the normal distribution with SciPy's correction for ties.
    """
    return _test("Wilcoxon signed-rank", differences, _signed_rank, alpha)


def permutation(differences: Sequence[float], alpha: float = ALPHA) -> TestResult:
    """Run the paired permutation test of the mean difference: every sign pattern is equally likely if the methods are
    exchangeable on each dataset (R. A. Fisher, The Design of Experiments, 1935, ch. III).

    Exact up to :data:`EXACT` differences; beyond, :data:`RESAMPLES` patterns from a fixed seed.
    """
    return _test("paired permutation", differences, _sign_flips, alpha)


def _test(
    name: str, differences: Sequence[float], p_value: Callable[[Sequence[float]], float], alpha: float
) -> TestResult:
    """Apply a test to the differences other than zero, or say why they are too few."""
    present = [difference for difference in differences if difference != 0]
    n, effect = len(present), mean(differences) if differences else None
    result = TestResult(name, n, effect, smallest=min(1.0, 2.0 ** (1 - n)), needed=needed(1, alpha))
    if result.smallest <= alpha:
        return replace(result, p=p_value(present))
    if not differences:
        return replace(result, reason="no dataset has both values")
    zeros = f" with a difference ({len(differences) - n} without)" if n < len(differences) else ""
    datasets = "1 dataset" if n == 1 else f"{n} datasets"
    limit = f"no p-value below {result.smallest:.3g} is possible, at least {result.needed} are needed"
    return replace(result, reason=f"{datasets}{zeros}: {limit}")


def _signed_rank(differences: Sequence[float]) -> float:
    from scipy import stats

    sizes = [abs(difference) for difference in differences]
    if len(set(sizes)) == len(sizes) or len(sizes) > EXACT:
        return float(stats.wilcoxon(differences, zero_method="wilcox", method="auto").pvalue)
    signed = zip(stats.rankdata(sizes), differences, strict=True)  # SciPy's exact distribution is that without ties
    return _sign_flips([float(rank) if difference > 0 else -float(rank) for rank, difference in signed])


def _sign_flips(values: Sequence[float]) -> float:
    """Return the two-sided p-value of the sum of the values under random signs.

    Not by SciPy's ``permutation_test``, which takes sums that differ by rounding alone for different ones.
    """
    import numpy as np

    limit = abs(fsum(values)) - 1e-9 * fsum(map(abs, values))
    if len(values) <= EXACT:
        sums = np.zeros(1)
        for value in values:
            sums = np.concatenate((sums + value, sums - value))
        return float(np.mean(np.abs(sums) >= limit))
    signs = np.random.default_rng(0).choice((-1.0, 1.0), (RESAMPLES, len(values)))
    return float((np.sum(np.abs(signs @ np.asarray(values)) >= limit) + 1) / (RESAMPLES + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values in the order of the given ones (S. Holm, A simple sequentially rejective multiple test
    procedure, Scandinavian Journal of Statistics 6, 1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, floor = [0.0] * len(p_values), 0.0
    for position, index in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - position) * p_values[index]))
        adjusted[index] = floor
    return adjusted


def corrected(results: Mapping[str, TestResult], alpha: float = ALPHA) -> dict[str, TestResult]:
    """Apply Holm's correction over a family of tests.

    The family counts every test given, also those without a p-value (as if it were 1), so that it does not depend on
    the outcome. A p-value that could not have reached the level after correction, whatever the data, is withheld.
    """
    family = len(results)
    enough = needed(max(family, 1), alpha)
    reachable = holm([result.smallest for result in results.values()])
    adjusted = holm([1.0 if result.p is None else result.p for result in results.values()])
    after = {}
    for (name, result), best, value in zip(results.items(), reachable, adjusted, strict=True):
        if result.p is None:
            counted = family > 1 and result.n
            more = f" ({enough} with Holm's correction over {family} comparisons)" if counted else ""
            changes: dict[str, object] = {"reason": result.reason + more}
        elif best > alpha and not isclose(best, alpha):
            reason = (
                f"{result.n} datasets with a difference: after Holm's correction over {family} comparisons no p-value "
                f"below {best:.3g} is possible, at least {enough} are needed"
            )
            changes = {"p": None, "reason": reason}
        else:
            changes = {"adjusted": value}
        after[name] = replace(result, needed=enough, **changes)  # type: ignore[arg-type]
    return after


def ordered_groups(order: Sequence[str], differ: Mapping[frozenset[str], bool]) -> list[tuple[str, ...]]:
    """Return the longest runs of an order, of two items or more, in which no two items differ.

    Args:
        order: items from best to worst.
        differ: True for the pairs that differ significantly; other pairs do not.
    """
    runs = []
    for start in range(len(order)):
        end = start
        while end + 1 < len(order) and not any(
            differ.get(frozenset((item, order[end + 1])), False) for item in order[start : end + 1]
        ):
            end += 1
        runs.append((start, end))
    longest = [runs[0]] if runs else []
    longest += [later for earlier, later in pairwise(runs) if later[1] > earlier[1]]
    return [tuple(order[start : end + 1]) for start, end in longest if end > start]
