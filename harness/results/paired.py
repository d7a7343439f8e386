"""Tests of one method against another across datasets: Wilcoxon's signed ranks, paired permutation, Holm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, fsum, isclose, log2

from harness.results.intervals import ALPHA
from harness.results.means import mean

EXACT = 20
"""Up to this many differences all sign patterns are enumerated (a million of them)."""
RESAMPLES = 99_999
"""Beyond it, so many are drawn, and the observed one counts as one more."""
WILCOXON = "Wilcoxon signed-rank"
PERMUTATION = "paired permutation"


@dataclass(frozen=True)
class TestResult:
    """A two-sided test of n paired differences.

    Attributes:
        test: its name; ``n`` the differences it uses.
        p: its p-value, and ``adjusted`` the one after Holm's correction; None where ``reason`` says why there is none.
        smallest: the smallest p-value that n differences could have given.
        needed: how many differences it takes before the smallest p-value falls below the level, after correction.
        effect: the mean difference.
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
    """Differences without which no two-sided sign-flip test can reach the level: 2 · 2⁻ⁿ ≤ alpha / comparisons.

    6 for one comparison at 0.05; 10 for the first step of Holm over 15.
    """
    return ceil(1 + log2(comparisons / alpha) - 1e-9)


def wilcoxon(differences: Sequence[float], alpha: float = ALPHA) -> TestResult:
    """F. Wilcoxon, Individual comparisons by ranking methods, Biometrics Bulletin 1, 1945, by datasets as in
    J. Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006, section 3.1.3.

    Differences of zero are left out and ties share their mean rank. Exact, with ties up to :data:`EXACT` differences
    and without up to 50; beyond, by the normal distribution with SciPy's correction for ties.
    """
    present = [difference for difference in differences if difference != 0]
    told = TestResult(WILCOXON, len(present), _mean(differences))
    refused = _too_few(told, len(differences), alpha)
    if refused is not None:
        return refused
    tied = len({abs(difference) for difference in present}) < len(present)
    if tied and len(present) <= EXACT:  # SciPy's exact distribution is that without ties
        p = _sign_flips(_signed_ranks(present))
    else:
        from scipy.stats import wilcoxon as test

        p = float(test(present, zero_method="wilcox", method="auto").pvalue)
    return replace(told, p=p, smallest=_smallest(len(present)), needed=needed(1, alpha))


def permutation(differences: Sequence[float], alpha: float = ALPHA) -> TestResult:
    """Paired permutation test of the mean difference: every sign pattern is equally likely if the methods are
    exchangeable on each dataset (R. A. Fisher, The Design of Experiments, 1935, ch. III).

    Exact up to :data:`EXACT` differences; beyond, :data:`RESAMPLES` patterns from a fixed seed.
    """
    present = [difference for difference in differences if difference != 0]
    told = TestResult(PERMUTATION, len(present), _mean(differences))
    refused = _too_few(told, len(differences), alpha)
    if refused is not None:
        return refused
    return replace(told, p=_sign_flips(present), smallest=_smallest(len(present)), needed=needed(1, alpha))


def _mean(differences: Sequence[float]) -> float | None:
    return mean(differences) if differences else None


def _smallest(n: int) -> float:
    return min(1.0, 2.0 ** (1 - n))


def _too_few(told: TestResult, given: int, alpha: float) -> TestResult | None:
    told = replace(told, smallest=_smallest(told.n), needed=needed(1, alpha))
    if told.smallest <= alpha:
        return None
    if not given:
        return replace(told, reason="no dataset has both values")
    zeros = f" with a difference ({given - told.n} without)" if told.n < given else ""
    datasets = "1 dataset" if told.n == 1 else f"{told.n} datasets"
    limit = f"no p-value below {told.smallest:.3g} is possible, at least {told.needed} are needed"
    return replace(told, reason=f"{datasets}{zeros}: {limit}")


def _signed_ranks(differences: Sequence[float]) -> list[float]:
    from scipy.stats import rankdata

    ranks = rankdata([abs(difference) for difference in differences])
    return [float(rank) if d > 0 else -float(rank) for rank, d in zip(ranks, differences, strict=True)]


def _sign_flips(values: Sequence[float]) -> float:
    """The two-sided p-value of the sum of the values under random signs."""
    import numpy as np

    limit = abs(fsum(values)) - 1e-9 * fsum(map(abs, values))  # sums that differ by rounding alone are equal
    if len(values) <= EXACT:
        sums = np.zeros(1)
        for value in values:
            sums = np.concatenate((sums + value, sums - value))
        return float(np.mean(np.abs(sums) >= limit))
    signs = np.random.default_rng(0).choice((-1.0, 1.0), (RESAMPLES, len(values)))
    return float((np.sum(np.abs(signs @ np.asarray(values)) >= limit) + 1) / (RESAMPLES + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, aligned with the given ones (S. Holm, A simple sequentially rejective multiple test
    procedure, Scandinavian Journal of Statistics 6, 1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, floor = [0.0] * len(p_values), 0.0
    for position, index in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - position) * p_values[index]))
        adjusted[index] = floor
    return adjusted


def corrected(results: Mapping[str, TestResult], alpha: float = ALPHA) -> dict[str, TestResult]:
    """Holm's correction over a family of tests.

    The family counts every test given, also those without a p-value (as if it were 1), so that it does not depend on
    the outcome. A p-value that could not have reached the level after correction, whatever the data, is withheld.
    """
    names, family = list(results), len(results)
    reachable = holm([results[name].smallest for name in names])
    adjusted = holm([1.0 if (p := results[name].p) is None else p for name in names])
    found = {}
    for name, best, value in zip(names, reachable, adjusted, strict=True):
        result = replace(results[name], needed=needed(family, alpha))
        if result.p is None:
            reason = result.reason
            if family > 1 and result.n:
                reason += f" ({result.needed} with Holm's correction over {family} comparisons)"
            found[name] = replace(result, reason=reason)
        elif best > alpha and not isclose(best, alpha):
            found[name] = replace(result, p=None, reason=_out_of_reach(result, best, family))
        else:
            found[name] = replace(result, adjusted=value)
    return found


def _out_of_reach(result: TestResult, best: float, family: int) -> str:
    return (
        f"{result.n} datasets with a difference: after Holm's correction over {family} comparisons no p-value below "
        f"{best:.3g} is possible, at least {result.needed} are needed"
    )


def ordered_groups(order: Sequence[str], differ: Mapping[frozenset[str], bool]) -> list[tuple[str, ...]]:
    """The longest runs of an order in which no two items differ; those of one item are left out.

    Args:
        order: items from best to worst.
        differ: for each pair whether it differs significantly; a pair that is not there does not.
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
