"""Hard edge splits: the top edges of each graph, and the subgraph that they induce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from harness.graphs import Batch

_GOLDEN = 5**0.5 % 1
"""Multiples of it, whole parts left out, lie evenly in [0, 1): see :func:`top_k_edges`."""


def top_k_edges(scores: Tensor, batch: Batch, ratio: float, *, rounding: str = "up") -> Tensor:
    """Return (E,) bool: the highest-scoring ratio · E_g edges of each graph, at least one where it has any.

    Equal scores, which constant node features give to many edges, fall in an order that mixes a graph's edges: by
    position, all ties would go to nodes with low numbers, in generated graphs the base's. Every directed edge counts
    for itself.

    Args:
        scores: (E,) one finite score per edge; only their order matters.
        batch: the graphs.
        ratio: share of the edges to keep, in (0, 1].
        rounding: whether a number that is not whole is rounded up or down.
    """
    graph = batch.batch[batch.edge_index[0]]
    counts = torch.bincount(graph, minlength=batch.num_graphs)
    # ratio · E may miss a whole number by rounding; the small slack keeps that from adding or taking an edge.
    wanted = counts.double() * ratio
    whole = torch.ceil(wanted - 1e-9) if rounding == "up" else torch.floor(wanted + 1e-9)
    quota = whole.long().clamp(min=1).minimum(counts)
    place = torch.arange(graph.numel(), device=scores.device) - (counts.cumsum(0) - counts)[graph]
    mixed = torch.argsort(((place + 1).double() * _GOLDEN).frac())
    # Two stable sorts instead of one over graph-shifted scores: no resolution is lost to large scores or batches.
    order = mixed[torch.sort(scores.detach()[mixed], descending=True, stable=True).indices]
    order = order[torch.sort(graph[order], stable=True).indices]
    return torch.zeros_like(graph, dtype=torch.bool).index_put_((order,), place < quota[graph])


@dataclass(frozen=True)
class Subgraph:
    """A part of a batch, as a batch of its own with as many graphs.

    Attributes:
        batch: the part, nodes renumbered; edges stay sorted by target.
        nodes: (N',) position of each kept node in the whole batch, ascending.
        edges: (E',) position of each kept edge in the whole batch, ascending.
        present: (B,) bool, whether the graph kept an edge.
    """

    batch: Batch
    nodes: Tensor
    edges: Tensor
    present: Tensor


def subgraph(
    batch: Batch, edge_mask: Tensor, *, without_edges: Literal["all-nodes", "empty"] = "all-nodes"
) -> Subgraph:
    """Return the subgraph that a set of edges induces: these edges and the nodes they touch.

    The number and order of the graphs stay, whatever is left of them, so that labels keep their rows.

    Args:
        batch: the graphs.
        edge_mask: (E,) bool, edges to keep.
        without_edges: what a graph becomes none of whose edges are kept: all its nodes without edges, so that its
            embedding is defined, or no node at all, so that a readout gives zeros.
    """
    edges = edge_mask.nonzero().squeeze(1)
    edge_index = batch.edge_index[:, edges]
    keep = torch.zeros(batch.num_nodes, dtype=torch.bool, device=edges.device)
    keep[edge_index.reshape(-1)] = True
    present = torch.zeros(batch.num_graphs, dtype=torch.bool, device=edges.device)
    present[batch.batch[edge_index[0]]] = True
    if without_edges == "all-nodes":
        keep |= ~present[batch.batch]
    nodes = keep.nonzero().squeeze(1)
    return Subgraph(batch.part(nodes, edges), nodes, edges, present)
