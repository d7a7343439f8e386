"""Readouts: node embeddings to graph embeddings."""

from __future__ import annotations

from torch import Tensor

from harness.graphs import Batch


def pool(nodes: Tensor, batch: Batch, how: str = "sum") -> Tensor:
    """(B, d) graph embeddings; a graph without nodes gets zeros.

    Args:
        nodes: (N, d).
        batch: the graphs.
        how: ``sum``, ``mean`` or ``max``.

    Raises:
        ValueError: another ``how``.
    """
    if how == "max":
        index = batch.batch.unsqueeze(1).expand_as(nodes)
        start = nodes.new_zeros((batch.num_graphs, nodes.size(1)))
        return start.scatter_reduce(0, index, nodes, "amax", include_self=False)
    if how not in ("sum", "mean"):
        raise ValueError(f"readout must be sum, mean or max, found {how!r}")
    total = nodes.new_zeros((batch.num_graphs, nodes.size(1))).index_add_(0, batch.batch, nodes)
    return total if how == "sum" else total / batch.ptr.diff().clamp(min=1).to(total.dtype).unsqueeze(1)
