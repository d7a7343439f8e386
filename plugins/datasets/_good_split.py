"""GOOD's splits of molecules by a domain, such as scaffold or size: covariate and concept shift.

The covariate rule is that of Gui et al., "GOOD: A Graph Out-of-Distribution Benchmark", NeurIPS 2022. Of the concept
rule the strengths are GOOD's, and how molecules are drawn for them is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from math import exp
from types import MappingProxyType
from typing import Literal

from harness import DataError
from plugins.datasets._splits import LARGEST_SEED, Split, shuffled

ROLES: Mapping[str, Literal["train", "val", "test"]] = MappingProxyType(
    {"train": "train", "id_val": "val", "id_test": "test", "ood_val": "val", "ood_test": "test"}
)
TEST_SPLITS = ("id_test", "ood_test")
COVARIATE_ENVIRONMENTS = 10
STRENGTHS = (0.95, 0.95, 0.9, 0.85, 0.5)
"""Of three training environments, OOD validation and OOD test."""
CONCEPT_ENVIRONMENTS = 3
ANOTHER = LARGEST_SEED + 1
"""Added to a seed for a second order that has nothing to do with the first."""


@dataclass(frozen=True)
class DomainSplit:
    """``rows`` of each split, ascending; the ``environments`` of the rows of train, id_val and id_test."""

    rows: Split
    environments: dict[int, int]


def covariate_split(domains: Sequence[int], split_seed: int) -> DomainSplit:
    """Domains in order: the first are for training, the next for ``ood_val``, the last for ``ood_test``.

    Whole domains are taken until training has at least 80 % of the rows and the two together at least 90 %. Then
    ``id_val`` and ``id_test`` get a tenth of all rows each (rounded down), drawn from those for training. These
    are cut into ten environments: a domain's is the tenth of the rows for training in which its first row falls.

    Args:
        domains: the number of each row's domain; the smallest number comes first.
        split_seed: seed of drawing ``id_val`` and ``id_test``.
    """
    total = len(domains)
    runs = _runs(domains)
    starts = list(accumulate(map(len, runs), initial=0))
    train = next(place for place, start in enumerate(starts) if 10 * start >= 8 * total)
    val = next(place for place, start in enumerate(starts) if 10 * start >= 9 * total and place >= train)
    parts = [[row for run in part for row in run] for part in (runs[:train], runs[train:val], runs[val:])]
    environments = {
        row: start * COVARIATE_ENVIRONMENTS // len(parts[0])
        for run, start in zip(runs[:train], starts, strict=False)
        for row in run
    }
    return _five_parts(parts[0], parts[1], parts[2], total // 10, environments, split_seed)


def concept_split(domains: Mapping[int, int], labels: Mapping[int, int], split_seed: int) -> DomainSplit:
    """The label goes with the domain, most of all in training, and the other way round in ``ood_test``.

    Domains in order are cut into two halves of about equally many rows; label 1 goes with the first, 0 with the
    second. Each half is drawn into five equal parts: three training environments, ``ood_val``, ``ood_test``. The
    odds that a row of a half has the half's label are to each other, over the parts, as those of the strengths .95,
    .95, .9, .85, .5; how large they are follows from the data, as every row is in one part. So all parts have equally
    many rows of either half, and only what its label is shifts. ``id_val`` and ``id_test`` get 15 % of the rows for
    training each.

    Args:
        domains: row -> the number of its domain; the smallest number comes first.
        labels: row -> 0 or 1, of the same rows.
        split_seed: seed of all drawing.
    """
    rows = sorted(domains)
    runs = [[rows[place] for place in run] for run in _runs([domains[row] for row in rows])]
    starts = accumulate(map(len, runs), initial=0)
    first = {row for run, start in zip(runs, starts, strict=False) if 2 * start < len(rows) for row in run}
    parts: list[list[int]] = [[] for _ in STRENGTHS]
    for label in (1, 0):
        half = [row for row in shuffled(rows, split_seed) if (row in first) == (label == 1)]
        for part, drawn in zip(parts, _draw_half(half, labels, label), strict=True):
            part.extend(drawn)
    *training, val, test = parts
    environments = {row: env for env, part in enumerate(training) for row in part}
    pool = [row for part in training for row in part]
    return _five_parts(pool, val, test, 15 * len(pool) // 100, environments, split_seed)


def _runs(domains: Sequence[int]) -> list[list[int]]:
    """The rows of each domain, ascending; domains in order."""
    order = sorted(range(len(domains)), key=lambda row: (domains[row], row))
    return [list(run) for _, run in groupby(order, key=lambda row: domains[row])]


def _draw_half(half: Sequence[int], labels: Mapping[int, int], label: int) -> list[list[int]]:
    """Five parts of equal size, with the half's label as often as its strength says."""
    agreeing = [row for row in half if labels[row] == label]
    others = [row for row in half if labels[row] != label]
    sizes = [len(half) // len(STRENGTHS) + (place < len(half) % len(STRENGTHS)) for place in range(len(STRENGTHS))]
    agree = agreeing_counts(sizes, len(agreeing))
    cuts = list(accumulate(agree, initial=0))
    other_cuts = list(accumulate((size - count for size, count in zip(sizes, agree, strict=True)), initial=0))
    return [agreeing[a:b] + others[c:d] for (a, b), (c, d) in zip(pairwise(cuts), pairwise(other_cuts), strict=True)]


def agreeing_counts(sizes: Sequence[int], agreeing: int) -> list[int]:
    """Return how many of ``agreeing`` rows go to each part; the parts' odds are in the ratio of the strengths' odds."""

    def wanted(scale: float) -> list[float]:
        odds = [exp(scale) * strength / (1 - strength) for strength in STRENGTHS]
        return [size * value / (1 + value) for size, value in zip(sizes, odds, strict=True)]

    low, high = -60.0, 60.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(wanted(middle)) < agreeing else (low, middle)
    exact = wanted(low)
    counts = [min(int(value), size) for value, size in zip(exact, sizes, strict=True)]
    by_remainder = sorted(range(len(sizes)), key=lambda place: counts[place] - exact[place])
    free = [place for place in by_remainder if counts[place] < sizes[place]]
    for place in free[: agreeing - sum(counts)]:
        counts[place] += 1
    return counts


def _five_parts(
    pool: Sequence[int],
    val: Sequence[int],
    test: Sequence[int],
    held_out: int,
    environments: dict[int, int],
    split_seed: int,
) -> DomainSplit:
    """``held_out`` rows of the pool become ``id_val``, as many ``id_test``."""
    order = shuffled(sorted(pool), split_seed + ANOTHER)
    rows = {
        "train": sorted(order[2 * held_out :]),
        "id_val": sorted(order[:held_out]),
        "id_test": sorted(order[held_out : 2 * held_out]),
        "ood_val": sorted(val),
        "ood_test": sorted(test),
    }
    empty = [name for name, found in rows.items() if not found]
    if empty:
        raise DataError(
            f"the split by domain leaves {' and '.join(empty)} without a molecule; use more molecules, or ones with "
            "more domains"
        )
    return DomainSplit(rows, environments)
