"""Random changes of a batch's graphs, for contrastive learning; whole batches at a time.

Every draw comes from the generator that the caller hands over. No change crosses from one graph of the batch to
another, and none leaves a graph without nodes. The four kinds are those of You et al., *Graph Contrastive Learning
with Augmentations*, NeurIPS 2020, section 3.1.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from harness.graphs.batch import Batch, pointer

_SLACK = 1e-9
"""Added before rounding down, so that 0.1 of 30 is 3 although 0.1 has no exact binary form."""


def drop_nodes(batch: Batch, ratio: float, rng: torch.Generator) -> Batch:
    """Take ``floor(ratio n)`` of each graph's n nodes away with their edges, but never the last node."""
    sizes = batch.ptr.diff()
    dropped = torch.minimum(_share(sizes, ratio), sizes - 1)
    return keep_nodes(batch, _random_ranks(batch.batch, batch.ptr, rng) >= dropped[batch.batch])


def grow_subgraph(batch: Batch, ratio: float, rng: torch.Generator) -> Batch:
    """Keep a connected piece of ``max(1, floor(ratio n))`` of each graph's n nodes, with the edges inside it.

    The piece starts at a random node and takes in, one at a time, a random node next to any of those it has, along
    edges of either direction; it stops short where its component ends.
    """
    sizes = batch.ptr.diff()
    wanted = _share(sizes, ratio).clamp(min=1)
    width = int(sizes.max())
    linked = _links(batch, width)
    inside = torch.arange(width, device=sizes.device) < sizes.unsqueeze(1)
    rows = torch.arange(batch.num_graphs, device=sizes.device)
    taken, frontier = torch.zeros_like(inside), inside
    for step in range(int(wanted.max())):
        score = torch.rand(frontier.shape, generator=rng).to(sizes.device).masked_fill_(~frontier, -1.0)
        value, chosen = score.max(1)
        grows = (value >= 0) & (step < wanted)
        taken[rows, chosen] |= grows
        reached = linked[rows, chosen] & grows.unsqueeze(1)
        frontier = (reached if step == 0 else frontier | reached) & ~taken
    return keep_nodes(batch, taken[inside])


def perturb_edges(batch: Batch, ratio: float, rng: torch.Generator) -> Batch:
    """Replace ``floor(ratio m)`` of each graph's m directed edges by edges between random distinct nodes of it.

    Each new edge takes over the features of the edge that it replaces. The graph may come to have an edge twice.
    In a graph of one node there is no other pair: it loses these edges, which are self loops.
    """
    owner = batch.batch[batch.edge_index[1]]
    first = batch.indptr[batch.ptr]
    moved = _random_ranks(owner, first, rng) < _share(first.diff(), ratio)[owner]
    graph = owner[moved]
    sizes = batch.ptr.diff()[graph]
    first_draw, second_draw = (torch.rand(graph.shape, generator=rng, dtype=torch.float64) for _ in range(2))
    source = (first_draw.to(sizes.device) * sizes).long()
    offset = (second_draw.to(sizes.device) * (sizes - 1)).long() + 1
    target = (source + offset) % sizes.clamp(min=1)
    edges = batch.edge_index.clone()
    edges[:, moved] = torch.stack([source, target]) + batch.ptr[graph]
    possible = torch.ones_like(moved)
    possible[moved] = sizes > 1
    return _with_edges(batch, edges, possible)


def mask_rows(batch: Batch, ratio: float, rng: torch.Generator) -> Batch:
    """Set the features of ``floor(ratio n)`` of each graph's n nodes to zero; the nodes stay.

    For codes of categorical features zero is a category: embed them first, and mask the embeddings. Constant
    features do not make this empty, since a zero row differs from them.
    """
    hidden = _random_ranks(batch.batch, batch.ptr, rng) < _share(batch.ptr.diff(), ratio)[batch.batch]
    return replace(batch, x=batch.x.masked_fill(hidden.unsqueeze(1), 0.0), cache={})


def keep_nodes(batch: Batch, keep: Tensor) -> Batch:
    """Return the sub-batch of the nodes where ``keep`` (N,) is true and the edges between them.

    Labels, environments and the rest that is per graph stay as they are; so does the number of graphs.
    """
    source, target = batch.edge_index
    return batch.part(keep.nonzero().squeeze(1), (keep[source] & keep[target]).nonzero().squeeze(1))


def _with_edges(batch: Batch, edges: Tensor, keep: Tensor) -> Batch:
    """Return the batch with those of the given edges where ``keep`` is true, in the order that a batch needs."""
    order = torch.argsort(edges[1], stable=True)
    order = order[keep[order]]
    edges = edges[:, order]
    return replace(
        batch,
        edge_index=edges,
        edge_attr=None if batch.edge_attr is None else batch.edge_attr[order],
        indptr=pointer(edges[1], batch.num_nodes),
        cache={},
        _outgoing=None,
    )


def _share(counts: Tensor, ratio: float) -> Tensor:
    return (counts * ratio + _SLACK).floor().long()


def _random_ranks(owner: Tensor, ptr: Tensor, rng: torch.Generator) -> Tensor:
    """Return items' ranks 0.. in a random order of each group; ``owner`` ascends and ``ptr`` bounds the groups."""
    shuffled = torch.argsort(torch.rand(owner.shape, generator=rng), stable=True).to(owner.device)
    grouped = shuffled[torch.argsort(owner[shuffled], stable=True)]
    ranks = torch.empty_like(owner)
    ranks[grouped] = torch.arange(owner.numel(), device=owner.device) - ptr[owner]
    return ranks


def _links(batch: Batch, width: int) -> Tensor:
    """Return (B, width, width) bool: True for two nodes of a graph that are joined, in either direction."""
    owner = batch.batch[batch.edge_index[0]]
    source, target = batch.edge_index - batch.ptr[owner]
    linked = torch.zeros((batch.num_graphs, width, width), dtype=torch.bool, device=owner.device)
    linked[owner, source, target] = True
    linked[owner, target, source] = True
    return linked
