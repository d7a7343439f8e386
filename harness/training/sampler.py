"""Which training graphs make up an epoch's batches: plain shuffling, or a few environments at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from harness.graphs import Batch, PackedGraphs

MIN_BATCH = 2
"""Fewer graphs make no training batch: BatchNorm and in-batch terms are undefined on it."""


def steps_per_epoch(num_train: int, batch_size: int, *, groups_per_batch: int = 0, drop_last: bool = False) -> int:
    """How many batches :func:`epoch_batches` gives of so many training graphs; 0 where it can give none."""
    if min(num_train, batch_size) < MIN_BATCH:
        return 0
    full, rest = divmod(num_train, batch_size)
    if groups_per_batch:
        return max(full, 1)
    return full + (rest >= MIN_BATCH and not (drop_last and full))


def epoch_batches(
    train: PackedGraphs,
    batch_size: int,
    rng: torch.Generator,
    *,
    groups_per_batch: int = 0,
    drop_last: bool = False,
    reorder: Callable[[Tensor], Tensor] | None = None,
) -> Iterator[Batch]:
    """One epoch of training batches.

    Args:
        train: the training graphs; with ``groups_per_batch``, with fixed environment ids.
        batch_size: graphs per batch.
        rng: generator of the order.
        groups_per_batch: environments per batch, see :func:`grouped_order`; 0 for each graph once, in random order,
            where a last batch of a single graph is left out.
        drop_last: leave out any last batch that is not full, unless it is the only one.
        reorder: is given the random order of all graphs, (n_train,), and returns the one to use, in which graphs may
            occur several times; without effect on environments per batch.

    Raises:
        ValueError: ``groups_per_batch`` is given and the graphs have no environment ids.
    """
    if not groups_per_batch:
        order = torch.randperm(len(train), generator=rng)
        order = order if reorder is None else reorder(order)
        steps = steps_per_epoch(len(order), batch_size, drop_last=drop_last)
        return train.batches(batch_size, order[: steps * batch_size])
    if train.env is None:
        raise ValueError("environments per batch need training graphs with environment ids")
    steps = steps_per_epoch(len(train), batch_size, groups_per_batch=groups_per_batch, drop_last=drop_last)
    rows = grouped_order(train.env, batch_size, groups_per_batch, steps, rng)
    return train.batches(rows.size(1), rows.flatten())


def grouped_order(env: Tensor, batch_size: int, groups: int, steps: int, rng: torch.Generator) -> Tensor:
    """(steps, n * m) graphs of each batch: m = batch_size // n graphs from each of n distinct environments.

    Environments are drawn uniformly, n = ``groups`` of them, or all where there are fewer. An environment gives m
    different graphs where it has as many; a smaller one gives m graphs drawn with replacement. Graphs of a negative id
    are never drawn. This is the sampler of WILDS (Koh et al., ICML 2021), which DrugOOD (Ji et al., AAAI 2023) uses.

    Args:
        env: (n_train,) ids, at least one of them not negative.
        batch_size: b.
        groups: environments per batch.
        steps: batches.
        rng: generator of all draws.
    """
    known = torch.nonzero(env >= 0).squeeze(1)
    _, counts = torch.unique(env[known], return_counts=True)
    members = torch.split(known[torch.argsort(env[known], stable=True)], counts.tolist())
    n = min(groups, len(members), batch_size)
    batches = []
    for _ in range(steps):
        chosen = torch.randperm(len(members), generator=rng)[:n].tolist()
        batches.append(torch.cat([_draw(members[place], batch_size // n, rng) for place in chosen]))
    return torch.stack(batches)


def _draw(members: Tensor, count: int, rng: torch.Generator) -> Tensor:
    """(count,) of an environment's graphs."""
    if len(members) >= count:
        return members[torch.randperm(len(members), generator=rng)[:count]]
    return members[torch.randint(len(members), (count,), generator=rng)]
