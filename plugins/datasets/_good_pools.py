"""GOOD-Motif before any graph is drawn: which graphs each part has (Gui et al., NeurIPS 2022).

Imports nothing heavy: a plan reads this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

DOMAINS = ("basis", "size")
SHIFTS = ("covariate", "concept", "no_shift")
ROLES: Mapping[str, Literal["train", "val", "test"]] = {
    "train": "train",
    "id_val": "val",
    "id_test": "test",
    "ood_val": "val",
    "ood_test": "test",
}
"""The five parts of a shifted set; one without a shift has train, val and test."""

WHEEL, TREE, LADDER, STAR, PATH = range(5)
BASES = (WHEEL, TREE, LADDER, STAR, PATH)
"""GOOD's numbers of the bases, which are also the environments of a shift of bases."""
CLASSES = 3
ENVIRONMENTS = 3
PLAIN_SIZE, SIZES, TIED_SIZES = 10, (6, 10, 15, 30, 70), (10, 40, 70)
STRENGTHS, VAL_STRENGTH = (0.99, 0.97, 0.95), 0.3
PERCENT = {
    "covariate": {"train": 60, "id_val": 10, "id_test": 10, "ood_val": 10, "ood_test": 10},
    "concept": {"train": 42, "id_val": 9, "id_test": 9, "ood_val": 20, "ood_test": 20},
    "no_shift": {"train": 60, "val": 20, "test": 20},
}


@dataclass(frozen=True)
class Pool:
    """Graphs of one part that are drawn alike.

    Attributes:
        part: the split.
        graphs: how many.
        bases: kinds of base that occur.
        sizes: middles of the widths that occur; a width is within 5 of one.
        env: environment id, -1 for none.
        tied: ``bases`` or ``sizes``: which of them goes with the motif, its three items in the motifs' order.
        strength: probability with which it does; else any of the three.
    """

    part: str
    graphs: int
    bases: tuple[int, ...]
    sizes: tuple[int, ...]
    env: int = -1
    tied: str = ""
    strength: float = 0.0


def plan(domain: str, shift: str, graphs: int) -> tuple[Pool, ...]:
    """The pools of all parts, in the parts' order; ``graphs`` is the number of all graphs together."""
    counts = {part: graphs * percent // 100 for part, percent in PERCENT[shift].items()}
    makers = {"covariate": _covariate, "concept": _concept, "no_shift": _plain}
    return tuple(pool for part, count in counts.items() for pool in makers[shift](domain, part, count))


def _covariate(domain: str, part: str, count: int) -> list[Pool]:
    envs = {"ood_val": (3,), "ood_test": (4,)}.get(part, range(ENVIRONMENTS))

    def pool(env: int, graphs: int) -> Pool:
        bases, sizes = ((BASES[env],), (PLAIN_SIZE,)) if domain == "basis" else (BASES, (SIZES[env],))
        return Pool(part, graphs, bases, sizes, env)

    return [pool(env, graphs) for env, graphs in zip(envs, _shared(count, len(envs)), strict=True)]


def _concept(domain: str, part: str, count: int) -> list[Pool]:
    strengths = {"ood_val": (VAL_STRENGTH,), "ood_test": (0.0,)}.get(part, STRENGTHS)
    tied = "bases" if domain == "basis" else "sizes"
    bases, sizes = ((WHEEL, TREE, LADDER), (PLAIN_SIZE,)) if domain == "basis" else (BASES, TIED_SIZES)
    return [
        Pool(part, graphs, bases, sizes, env if part == "train" else -1, tied, strength)
        for env, (graphs, strength) in enumerate(zip(_shared(count, len(strengths)), strengths, strict=True))
    ]


def _plain(domain: str, part: str, count: int) -> list[Pool]:
    del domain  # GOOD draws both domains alike
    return [Pool(part, count, BASES, (PLAIN_SIZE,))]


def _shared(count: int, parts: int) -> list[int]:
    """``count`` as a sum of ``parts`` numbers that differ by one at most."""
    return [count // parts + (i < count % parts) for i in range(parts)]
