"""Message passing on dense blocks: one padded square matrix per graph, one batched product per layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from harness.graphs import Batch


def padded_slots(batch: Batch, width: int) -> Tensor:
    """(N,) row of each node in a layout where every graph takes ``width`` rows."""
    graphs = torch.arange(batch.num_graphs, device=batch.ptr.device)
    shift = graphs * width - batch.ptr[:-1]
    return torch.arange(batch.num_nodes, device=batch.ptr.device) + shift[batch.batch]


def block_sum(x: Tensor, blocks: Tensor, slots: Tensor) -> Tensor:
    """(N, d): for each node i of a graph the sum over its nodes j of ``blocks[graph, i, j] x_j``.

    Args:
        x: (N, d) rows to send.
        blocks: (B, w, w), constant, entry (target, source).
        slots: (N,) from :func:`padded_slots` for width w.
    """
    return _BlockSum.apply(x, blocks, slots)  # type: ignore[no-any-return, no-untyped-call]


class _BlockSum(torch.autograd.Function):
    """Pad, multiply, cut. Each row has a slot of its own, so the gradient is a copy and not a scattered sum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, blocks: Tensor, slots: Tensor) -> Tensor:
        ctx.save_for_backward(blocks, slots)
        return _product(x, blocks, slots)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        blocks, slots = ctx.saved_tensors
        return _BlockSum.apply(gradient, blocks.transpose(1, 2), slots), None, None  # type: ignore[no-untyped-call]


def _product(x: Tensor, blocks: Tensor, slots: Tensor) -> Tensor:
    graphs, width, _ = blocks.shape
    padded = x.new_zeros((graphs * width, x.size(1))).index_copy_(0, slots, x)
    product = torch.bmm(blocks, padded.view(graphs, width, -1))
    return product.view(graphs * width, -1).index_select(0, slots)
