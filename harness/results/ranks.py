"""Ranks of several methods across datasets: average ranks, Friedman's test, Nemenyi's critical difference, wins.

After J. Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006, section 3.2. The groups
by pairwise Wilcoxon tests are the alternative of A. Benavoli, G. Corani and F. Mangili, Should we really use post-hoc
tests based on mean-ranks?, JMLR 17, 2016: whether two methods differ then depends on no third.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import sqrt

from harness.results.intervals import ALPHA
from harness.results.paired import corrected, needed, ordered_groups, wilcoxon
from harness.results.summary import settled

Scores = Mapping[str, Sequence[float | None]]
"""Method -> one value per dataset, in one order of datasets; None where there is none."""


@dataclass(frozen=True)
class Friedman:
    """Friedman's test that all methods rank alike.

    Attributes:
        methods, datasets: how many; chi-square has ``methods - 1`` degrees of freedom, F also
            ``(methods - 1)(datasets - 1)``.
        chi_square, p: the statistic, corrected for ties, and its p-value.
        f, f_p: R. L. Iman and J. M. Davenport's less conservative form (Communications in Statistics A 9, 1980).
        reason: why there is no p-value; ``needed``: the number of datasets that it takes.
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
    """Average ranks and the groups of methods that they do not tell apart.

    Attributes:
        ranks: method -> average rank, best first; 1 is best, ties share their mean rank.
        datasets: positions of the datasets ranked on; ``left_out``: methods that lack a value there.
        critical: Nemenyi's critical difference, None if ``friedman`` has no p-value.
        groups: the bars of the critical-difference diagram: runs of methods within the critical difference.
        wilcoxon_groups: the same by Holm-corrected pairwise Wilcoxon tests; None with a ``wilcoxon_reason``.
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


@dataclass(frozen=True)
class WinTieLoss:
    """On how many datasets a method is better than, equal to and worse than another."""

    wins: int
    ties: int
    losses: int

    @property
    def n(self) -> int:
        """The number of datasets where both have a value."""
        return self.wins + self.ties + self.losses


def complete(scores: Scores) -> tuple[dict[str, list[float]], tuple[int, ...]]:
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


def dataset_ranks(values: Sequence[float], *, higher_is_better: bool = True) -> list[float]:
    """Rank the values, 1 for the best; equal values share their mean rank."""
    from scipy.stats import rankdata

    sign = -1.0 if higher_is_better else 1.0
    return [float(rank) for rank in rankdata([sign * value for value in values])]


def ranking(scores: Scores, *, higher_is_better: bool = True, alpha: float = ALPHA) -> Ranking:
    """Rank the methods on the datasets where all of them have a value; see :func:`complete`.

    Args:
        scores: seed means of one metric on splits of one kind.
    """
    table, kept = complete(scores)
    columns = zip(*table.values(), strict=True)
    ranked = [dataset_ranks(column, higher_is_better=higher_is_better) for column in columns]
    means = {m: sum(row[i] for row in ranked) / len(ranked) for i, m in enumerate(table)} if ranked else {}
    ranks = dict(sorted(means.items(), key=lambda item: item[1]))
    test = friedman(ranked, alpha)
    critical, groups = None, []
    if test.p is not None:
        critical = critical_difference(len(ranks), len(ranked), alpha)
        far = {frozenset((a, b)): abs(ranks[a] - ranks[b]) >= critical for a, b in combinations(ranks, 2)}
        groups = ordered_groups(list(ranks), far)
    alternative, reason = _wilcoxon_groups(list(ranks), table, alpha)
    left_out = tuple(method for method in scores if method not in table)
    return Ranking(ranks, kept, left_out, test, critical, tuple(groups), alternative, reason, alpha)


def friedman(ranked: Sequence[Sequence[float]], alpha: float = ALPHA) -> Friedman:
    """Run Friedman's test on the ranks of each dataset, corrected for ties.

    M. Friedman, The use of ranks to avoid the assumption of normality, JASA 32, 1937. The p-values are those of the
    limiting distributions, which are rough for fewer than ten datasets or six methods (Demšar, section 3.2.2).
    """
    datasets, methods = len(ranked), len(ranked[0]) if ranked else 0
    if methods < 3:
        return Friedman(methods, datasets, reason="at least 3 methods are needed")
    from scipy.special import chdtrc, fdtrc

    enough = next(n for n in range(2, 100) if chdtrc(methods - 1, n * (methods - 1)) <= alpha)
    if datasets < enough:
        smallest = chdtrc(methods - 1, datasets * (methods - 1))
        count = "1 dataset" if datasets == 1 else f"{datasets} datasets"
        reason = f"{count}: no p-value below {smallest:.3g} is possible, at least {enough} are needed"
        return Friedman(methods, datasets, reason=reason, needed=enough)
    if all(len(set(row)) == 1 for row in ranked):
        return Friedman(methods, datasets, reason="all methods are equal on every dataset", needed=enough)
    from scipy.stats import friedmanchisquare

    chi, p = map(float, friedmanchisquare(*zip(*ranked, strict=True)))
    rest = datasets * (methods - 1) - chi
    f = (datasets - 1) * chi / rest if rest > 1e-9 else None
    f_p = float(fdtrc(methods - 1, (methods - 1) * (datasets - 1), f)) if f is not None else 0.0
    return Friedman(methods, datasets, chi, p, f, f_p, needed=enough)


def critical_difference(methods: int, datasets: int, alpha: float = ALPHA) -> float:
    """Return Nemenyi's critical difference of average ranks, q · √(k(k + 1) / 6N), q the quantile of the studentized
    range at infinite degrees of freedom over √2 (P. B. Nemenyi, thesis, Princeton 1963; Demšar, section 3.2.2)."""
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - alpha, methods, float("inf"))) / sqrt(2)
    return q * sqrt(methods * (methods + 1) / (6 * datasets))


def _wilcoxon_groups(
    order: Sequence[str], scores: Mapping[str, Sequence[float]], alpha: float
) -> tuple[tuple[tuple[str, ...], ...] | None, str]:
    """Group by pairwise Wilcoxon tests with Holm's correction over all pairs, or say why there are no groups."""
    pairs = list(combinations(order, 2))
    if not pairs:
        return None, ""
    enough = needed(len(pairs), alpha)
    if len(scores[order[0]]) < enough:
        return None, f"pairwise Wilcoxon tests of {len(order)} methods need at least {enough} datasets"
    differences = [[settled(a - b) for a, b in zip(scores[m], scores[o], strict=True)] for m, o in pairs]
    tests = corrected({str(i): wilcoxon(values, alpha) for i, values in enumerate(differences)}, alpha)
    adjusted = [1.0 if test.adjusted is None else test.adjusted for test in tests.values()]
    differ = {frozenset(pair): p <= alpha for pair, p in zip(pairs, adjusted, strict=True)}
    return tuple(ordered_groups(order, differ)), ""


def records(scores: Scores, *, higher_is_better: bool = True) -> dict[tuple[str, str], WinTieLoss]:
    """Count wins, ties and losses of each method against each other one, over the datasets where both have a value."""
    sign = 1 if higher_is_better else -1
    counts = {}
    for method, other in permutations(scores, 2):
        pairs = zip(scores[method], scores[other], strict=True)
        gaps = [sign * (a - b) for a, b in pairs if a is not None and b is not None]
        counts[method, other] = WinTieLoss(
            sum(d > 0 for d in gaps), sum(d == 0 for d in gaps), sum(d < 0 for d in gaps)
        )
    return counts
