"""Environments of molecules: whole scaffolds, put together into a few groups of about equal size."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from harness import Environment, PackedGraphs, Register, hookimpl, hparam


class Scaffold(Environment):
    """``k`` groups of scaffolds; molecules that share a scaffold are always in one group.

    Molecule sets have hundreds of scaffolds, most of them of one molecule, so scaffolds themselves leave nearly every
    environment of a batch empty. Scaffolds are dealt out from the largest, each to the group that is smallest so far.
    """

    name = "scaffold"
    positional = counted_by = "k"
    requires = "scaffold"
    k: int = hparam(2, low=1, search=[2, 3, 5, 10], help="number of groups")

    def assign(self, train: PackedGraphs, oracle: Mapping[str, Tensor], upstream: Mapping[str, Any]) -> Tensor:
        del train, oracle, upstream
        return deal(self.groups["scaffold"], self.k)


def deal(groups: Tensor, k: int) -> Tensor:
    """Put groups (n,) together into at most ``k`` of about equal size; -1 stays -1.

    The largest come first, ties in the order of their ids; each goes to the smallest pile, ties to the first one.
    """
    known = groups >= 0
    _, inverse, counts = torch.unique(groups[known], return_inverse=True, return_counts=True)
    piles, place = [0] * k, torch.zeros_like(counts)
    for group in torch.argsort(counts, descending=True, stable=True).tolist():
        place[group] = piles.index(min(piles))
        piles[place[group]] += int(counts[group])
    dealt = torch.full_like(groups, -1)
    dealt[known] = place[inverse]
    return dealt


@hookimpl
def bench_register(register: Register) -> None:
    register(Scaffold)
