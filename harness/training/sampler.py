"""Batches of an epoch's training graphs: plain shuffling, or a few environments at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.graphs import Batch, PackedGraphs

MIN_BATCH = 2
"""Fewer graphs make no training batch: BatchNorm and in-batch terms are undefined on it."""


def steps_per_epoch(num_train: int, batch_size: int, *, groups_per_batch: int = 0, drop_last: bool = False) -> int:
    """Return the number of batches, of any size, that :func:`epoch_batches` makes; 0 where it can make none."""
    if min(num_train, batch_size) < MIN_BATCH:
        return 0
    full, rest = divmod(num_train, batch_size)
    if groups_per_batch:
        return max(full, 1)
    return full + (rest >= MIN_BATCH and not (drop_last and full))


@dataclass(frozen=True)
class Epoch:
    """One epoch's batches: its length is their number, and it can be gone through once or more often.

    Attributes:
        train: the training graphs.
        order: (m,) graphs to visit.
        sizes: graphs of each batch; what of ``order`` is left at its end is not visited.
    """

    train: PackedGraphs
    order: Tensor
    sizes: Sequence[int]

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Batch]:
        return self.train.batches(self.sizes, self.order)


def epoch_batches(
    train: PackedGraphs,
    batch_size: int,
    rng: torch.Generator,
    *,
    groups_per_batch: int = 0,
    drop_last: bool = False,
    reorder: Callable[[Tensor], Tensor] | None = None,
) -> Epoch:
    """Return one epoch of training batches.

    Args:
        train: the training graphs; with ``groups_per_batch``, with fixed environment ids. Their ``max_batch_nodes``
            ends a batch early, but never before :data:`MIN_BATCH` graphs; see :func:`fitting` for environments per
            batch.
        batch_size: graphs per batch.
        rng: generator of the order.
        groups_per_batch: environments per batch, see :func:`grouped_order`; 0 for each graph once, in random order,
            where a last batch of a single graph is left out.
        drop_last: leave out any last batch of fewer than ``batch_size`` graphs, unless it is the only one.
        reorder: is given the random order of all graphs, (n_train,), and returns the one to use, in which graphs may
            occur several times; without effect on environments per batch.

    Raises:
        ValueError: ``groups_per_batch`` is given and the graphs have no environment ids.
    """
    if groups_per_batch:
        return _grouped_epoch(train, batch_size, groups_per_batch, rng)
    order = torch.randperm(len(train), generator=rng).to(train.x.device)
    order = order if reorder is None else reorder(order)
    if min(len(order), batch_size) < MIN_BATCH:
        return Epoch(train, order, ())
    sizes = train.batch_sizes(batch_size, order, at_least=MIN_BATCH)
    least = batch_size if drop_last and len(sizes) > 1 else MIN_BATCH
    return Epoch(train, order, sizes if sizes[-1] >= least else sizes[:-1])


def _grouped_epoch(train: PackedGraphs, batch_size: int, groups: int, rng: torch.Generator) -> Epoch:
    if train.env is None:
        raise ValueError("environments per batch need training graphs with environment ids")
    steps = steps_per_epoch(len(train), batch_size, groups_per_batch=groups)
    rows = grouped_order(train.env.cpu(), batch_size, groups, steps, rng)
    if not train.max_batch_nodes:
        return Epoch(train, rows.flatten().to(train.x.device), [rows[0].numel()] * steps)
    each = fitting(train.node_ptr.cpu().diff()[rows], train.max_batch_nodes)
    taken = torch.arange(rows.size(2)) < each.reshape(-1, 1, 1)
    return Epoch(train, rows[taken.expand_as(rows)].to(train.x.device), (each * rows.size(1)).tolist())


def fitting(nodes: Tensor, bound: int) -> Tensor:
    """Return (steps,) the most graphs per environment with which a batch has at most ``bound`` nodes.

    At least one, or two where there is one environment, even where these have more nodes.

    Args:
        nodes: (steps, n, m) nodes of the m graphs of each of n environments.
        bound: most nodes of a batch.
    """
    within = nodes.sum(1).cumsum(1) <= bound
    return within.sum(1).clamp(min=1 if nodes.size(1) >= MIN_BATCH else MIN_BATCH)


def grouped_order(env: Tensor, batch_size: int, groups: int, steps: int, rng: torch.Generator) -> Tensor:
    """Return (steps, n, m) graphs of each batch: m = batch_size // n graphs from each of n distinct environments.

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
        batches.append(torch.stack([_draw(members[place], batch_size // n, rng) for place in chosen]))
    return torch.stack(batches)


def _draw(members: Tensor, count: int, rng: torch.Generator) -> Tensor:
    """Return (count,) of an environment's graphs."""
    if len(members) >= count:
        return members[torch.randperm(len(members), generator=rng)[:count]]
    return members[torch.randint(len(members), (count,), generator=rng)]
