"""Readouts: node embeddings to graph embeddings."""

from __future__ import annotations

import torch
from torch import Tensor

from harness.graphs import Batch


def pool(nodes: Tensor, batch: Batch, how: str = "sum") -> Tensor:
    """(B, d) graph embeddings; a graph without nodes gets zeros.

    Args:
        nodes: (N, d).
        how: ``sum``, ``mean`` or ``max``.
    """
    if how == "max":
        index = batch.batch.unsqueeze(1).expand_as(nodes)
        start = nodes.new_zeros((batch.num_graphs, nodes.size(1)))
        return start.scatter_reduce(0, index, nodes, "amax", include_self=False)
    total = nodes.new_zeros((batch.num_graphs, nodes.size(1))).index_add(0, batch.batch, nodes)
    if how == "sum":
        return total
    counts = (batch.ptr[1:] - batch.ptr[:-1]).clamp(min=1)
    return total / counts.to(torch.float32).unsqueeze(1)
