"""Ranks of several methods across datasets: average ranks, Friedman's test, Nemenyi's critical difference, records.

After J. Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006, section 3.2. The groups
by pairwise Wilcoxon tests are the alternative of A. Benavoli, G. Corani and F. Mangili, Should we really use post-hoc
tests based on mean-ranks?, JMLR 17, 2016: whether two methods differ then depends on no third.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

from harness.results.intervals import ALPHA
from harness.results.means import settled
from harness.results.paired import corrected, needed, ordered_groups, wilcoxon

Scores = Mapping[str, Sequence[float | None]]
"""Method -> one value per dataset, in one order of datasets; None where there is none."""


@dataclass(frozen=True)
class Complete:
    """The part of a table without gaps: positions of the datasets kept, and what was left out of it."""

    scores: dict[str, list[float]]
    kept: tuple[int, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Friedman:
    """Friedman's test that all methods rank alike.

    Attributes:
        methods, datasets: how many; chi-square has ``methods - 1`` degrees of freedom, F also
            ``(methods - 1)(datasets - 1)``.
        chi_square, p: the statistic, corrected for ties, and its p-value.
        f, f_p: R. L. Iman and J. M. Davenport's less conservative form (Communications in Statistics A 9, 1980).
        reason: why there is no p-value; ``needed`` how many datasets it takes.
    """

    methods: int
    datasets: int
    chi_square: float | None = None
    p: float | None = None
    f: float | None = None
    f_p: float | None = None
    reason: str = ""
    needed: int = 0


@dataclass(frozen=True)
class Ranking:
    """Average ranks and what they allow to say.

    Attributes:
        ranks: method -> average rank, best first; 1 is best, ties share their mean rank.
        datasets: positions of the datasets ranked on; ``left_out`` methods that lack a value there.
        critical: Nemenyi's critical difference, None where ``friedman`` has no p-value.
        groups: the bars of the critical-difference diagram: runs of methods within the critical difference.
        wilcoxon_groups: likewise by Holm-corrected pairwise Wilcoxon tests; None where ``wilcoxon_reason`` says why.
    """

    ranks: Mapping[str, float]
    datasets: tuple[int, ...]
    left_out: tuple[str, ...]
    friedman: Friedman
    critical: float | None = None
    groups: tuple[tuple[str, ...], ...] = ()
    wilcoxon_groups: tuple[tuple[str, ...], ...] | None = None
    wilcoxon_reason: str = ""
    alpha: float = ALPHA


def complete(scores: Scores) -> Complete:
    """Leave out methods and datasets until no value is missing.

    Whichever of them lacks the largest share of its values goes first, methods before datasets in a tie, so that one
    method that failed somewhere costs no dataset, and one dataset that has not run costs no method.
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
    whole = {m: [value for d in kept if (value := scores[m][d]) is not None] for m in methods}
    return Complete(whole, tuple(kept), tuple(m for m in scores if m not in methods))


def dataset_ranks(values: Sequence[float], *, higher_is_better: bool = True) -> list[float]:
    """Rank of each value, 1 for the best; equal values share their mean rank."""
    from scipy.stats import rankdata

    sign = -1.0 if higher_is_better else 1.0
    return [float(rank) for rank in rankdata([sign * value for value in values])]


def ranking(scores: Scores, *, higher_is_better: bool = True, alpha: float = ALPHA) -> Ranking:
    """Rank the methods on the datasets where all of them have a value; see :func:`complete`.

    Args:
        scores: seed means of one metric on splits of one kind.
    """
    table = complete(scores)
    columns = list(zip(*table.scores.values(), strict=True))
    ranked = [dataset_ranks(column, higher_is_better=higher_is_better) for column in columns]
    means = {m: sum(row[i] for row in ranked) / len(ranked) for i, m in enumerate(table.scores)} if ranked else {}
    ranks = dict(sorted(means.items(), key=lambda item: item[1]))
    test = friedman(ranked, alpha)
    critical = None if test.p is None else critical_difference(len(ranks), len(ranked), alpha)
    far = {frozenset((a, b)): critical is not None and abs(ranks[a] - ranks[b]) >= critical for a, b in _pairs(ranks)}
    groups = () if critical is None else tuple(ordered_groups(list(ranks), far))
    alternative, reason = _wilcoxon_groups(list(ranks), table.scores, alpha)
    return Ranking(ranks, table.kept, table.left_out, test, critical, groups, alternative, reason, alpha)


def _pairs(ranks: Mapping[str, float]) -> list[tuple[str, str]]:
    return list(combinations(ranks, 2))


def friedman(ranked: Sequence[Sequence[float]], alpha: float = ALPHA) -> Friedman:
    """Friedman's test on the ranks of each dataset, in the tie-corrected form that SciPy uses.

    M. Friedman, The use of ranks to avoid the assumption of normality, JASA 32, 1937. The p-values are those of the
    limiting distributions, which are rough for fewer than ten datasets or six methods (Demšar, section 3.2.2).
    """
    from scipy.special import chdtrc, fdtrc

    datasets, methods = len(ranked), len(ranked[0]) if ranked else 0
    if methods < 3:
        return Friedman(methods, datasets, reason="at least 3 methods are needed")
    enough = next(n for n in range(2, 100) if chdtrc(methods - 1, n * (methods - 1)) <= alpha)
    if datasets < enough:
        limit = f"no p-value below {chdtrc(methods - 1, datasets * (methods - 1)):.3g} is possible, "
        told = "1 dataset" if datasets == 1 else f"{datasets} datasets"
        return Friedman(methods, datasets, reason=f"{told}: {limit}at least {enough} are needed", needed=enough)
    sums = [sum(row[i] for row in ranked) for i in range(methods)]
    ties = sum(size**3 - size for row in ranked for size in (row.count(rank) for rank in set(row)))
    correction = 1 - ties / (datasets * (methods**3 - methods))
    if not correction:
        return Friedman(methods, datasets, reason="all methods are equal on every dataset", needed=enough)
    spread = 12 / (datasets * methods * (methods + 1)) * sum(s * s for s in sums) - 3 * datasets * (methods + 1)
    chi = spread / correction
    rest = datasets * (methods - 1) - chi
    f = (datasets - 1) * chi / rest if rest > 1e-9 else None
    f_p = float(fdtrc(methods - 1, (methods - 1) * (datasets - 1), f)) if f is not None else 0.0
    return Friedman(methods, datasets, chi, float(chdtrc(methods - 1, chi)), f, f_p, needed=enough)


def critical_difference(methods: int, datasets: int, alpha: float = ALPHA) -> float:
    """Nemenyi's critical difference of average ranks, q · √(k(k + 1) / 6N), q the quantile of the studentized range
    at infinite degrees of freedom over √2 (P. B. Nemenyi, thesis, Princeton 1963; Demšar, section 3.2.2)."""
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - alpha, methods, float("inf"))) / sqrt(2)
    return q * sqrt(methods * (methods + 1) / (6 * datasets))


def _wilcoxon_groups(
    order: Sequence[str], scores: Mapping[str, Sequence[float]], alpha: float
) -> tuple[tuple[tuple[str, ...], ...] | None, str]:
    """Groups by pairwise Wilcoxon tests with Holm's correction over all pairs, or why there are none."""
    pairs = list(combinations(order, 2))
    datasets = len(scores[order[0]]) if order else 0
    enough = needed(len(pairs), alpha) if pairs else 0
    if not pairs or datasets < enough:
        return None, f"pairwise Wilcoxon tests of {len(order)} methods need at least {enough} datasets" if pairs else ""
    tests = {
        f"{i}": wilcoxon([settled(a - b) for a, b in zip(scores[one], scores[other], strict=True)], alpha)
        for i, (one, other) in enumerate(pairs)
    }
    found = corrected(tests, alpha)
    differ = {frozenset(pair): (p := found[f"{i}"].adjusted) is not None and p <= alpha for i, pair in enumerate(pairs)}
    return tuple(ordered_groups(order, differ)), ""


@dataclass(frozen=True)
class Record:
    """On how many datasets a method is better than, equal to and worse than another; None of them where both lack."""

    wins: int
    ties: int
    losses: int

    @property
    def n(self) -> int:
        """Datasets where both have a value."""
        return self.wins + self.ties + self.losses


def records(scores: Scores, *, higher_is_better: bool = True) -> dict[tuple[str, str], Record]:
    """The record of each method against each other one, over the datasets where both have a value."""
    sign = 1 if higher_is_better else -1
    found = {}
    for one in scores:
        for other in scores:
            if one == other:
                continue
            pairs = [
                sign * (a - b)
                for a, b in zip(scores[one], scores[other], strict=True)
                if a is not None and b is not None
            ]
            found[one, other] = Record(sum(d > 0 for d in pairs), sum(d == 0 for d in pairs), sum(d < 0 for d in pairs))
    return found
