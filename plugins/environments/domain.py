"""Environments that the dataset itself supplies, such as assays, scaffolds or molecule sizes."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from harness import Environment, PackedGraphs, Register, UserError, hookimpl, hparam


class Domain(Environment):
    """The dataset's own domains, renumbered from 0 on the training graphs; -1 where a graph has none.

    Datasets with hundreds of domains leave most of them with no or one graph in a batch. ``max_envs`` then merges
    neighbouring domains, in the dataset's order, into groups of about equal size.
    """

    name = "domain"
    requires = "env"
    counted_by = "max_envs"
    max_envs: int | None = hparam(None, low=1, help="merge neighbouring domains into at most this many; none: keep all")

    def assign(self, train: PackedGraphs, oracle: Mapping[str, Tensor], upstream: Mapping[str, Any]) -> Tensor:
        del oracle, upstream
        if train.env is None or not bool((train.env >= 0).any()):
            raise UserError("environment 'domain': this dataset's training graphs carry no domains")
        env = torch.full_like(train.env, -1)
        known = train.env >= 0
        env[known] = torch.unique(train.env[known], return_inverse=True)[1]
        return env if self.max_envs is None else merge_neighbours(env, self.max_envs)


def merge_neighbours(env: Tensor, groups: int) -> Tensor:
    """Merge (n,) ids 0..K-1 into at most ``groups`` runs of neighbouring ids with about equally many graphs.

    Each id goes to the group in which the middle of its graphs falls when all are lined up by id. A domain larger
    than a group's share may leave fewer groups than asked for.
    """
    known = env >= 0
    counts = torch.bincount(env[known])
    if len(counts) <= groups:
        return env
    middle = counts.cumsum(0) - counts / 2
    group = (middle * groups / counts.sum()).long().clamp(max=groups - 1)
    merged = torch.full_like(env, -1)
    merged[known] = torch.unique(group, return_inverse=True)[1][env[known]]
    return merged


@hookimpl
def bench_register(register: Register) -> None:
    register(Domain)
