"""Message passing: sums over incoming edges, and over the nodes of a graph by dense blocks.

The sum over neighbours is one call of ``torch.embedding_bag``, which gathers and adds rows in one pass: on one CPU
thread it takes a third of the time of ``index_select`` and ``index_add``, and less than a CSR product. Its built-in
backward pass sorts the indices anew and is slow; here the edges grouped by source, which a batch brings along, make
that pass a bag sum too. On the CPU sums run in a fixed order, so results repeat bit for bit. Everything can be
differentiated twice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from harness.graphs import Batch


def propagate(x: Tensor, batch: Batch, edge_weight: Tensor | None = None, edge_message: Tensor | None = None) -> Tensor:
    """Return (N, d): for each node i the sum of w_ij ReLU(x_j + e_ij) over its incoming edges j -> i.

    Args:
        x: (N, d) node embeddings.
        batch: the graphs.
        edge_weight: (E,) w in the order of ``batch.edge_index``, or None for one everywhere.
        edge_message: (E, d) e, or None for zero everywhere.
    """
    if edge_message is None:
        return neighbour_sum(torch.relu(x), batch, edge_weight)
    messages = torch.relu(x.index_select(0, batch.edge_index[0]) + edge_message)
    return sum_to_targets(messages if edge_weight is None else messages * edge_weight.unsqueeze(1), batch)


def neighbour_sum(x: Tensor, batch: Batch, edge_weight: Tensor | None = None) -> Tensor:
    """Return (N, d): for each node i the sum of w_ij x_j over its incoming edges j -> i.

    Args:
        x: (N, d) rows to send.
        batch: the graphs.
        edge_weight: (E,) w in the order of ``batch.edge_index``, or None for one everywhere.

    Raises:
        ValueError: ``edge_weight`` is not (E,).
    """
    if edge_weight is not None and edge_weight.shape != (batch.num_edges,):
        raise ValueError(f"edge_weight must be ({batch.num_edges},), found {tuple(edge_weight.shape)}")
    return _product(x, edge_weight, batch, False)


def sum_to_targets(messages: Tensor, batch: Batch) -> Tensor:
    """Return (N, d): for each node the sum of its incoming edges' rows of ``messages`` (E, d)."""
    return messages.new_zeros((batch.num_nodes, messages.size(1))).index_add_(0, batch.edge_index[1], messages)


def _product(x: Tensor, weight: Tensor | None, batch: Batch, backwards: bool) -> Tensor:
    """Return the product of the weighted adjacency matrix, or of its transpose where ``backwards``, with x."""
    if torch.is_grad_enabled() and (x.requires_grad or (weight is not None and weight.requires_grad)):
        return _Product.apply(x, weight, batch, backwards)  # type: ignore[no-any-return, no-untyped-call]
    return _bag_sums(x, weight, batch, backwards)  # of inputs, in evaluation, and in an ordinary backward pass


class _Product(torch.autograd.Function):
    """:func:`_bag_sums` with a backward pass that can itself be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, batch: Batch, backwards: bool) -> Tensor:
        ctx.batch, ctx.backwards = batch, backwards
        if weight is not None:
            ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, weight)
        return _bag_sums(x, weight, batch, backwards)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, weight = ctx.saved_tensors or (gradient, None)  # without a weight, x is not looked at
        for_x = for_weight = None
        if ctx.needs_input_grad[0]:
            for_x = _product(gradient, weight, ctx.batch, not ctx.backwards)
        if ctx.needs_input_grad[1]:
            source, target = ctx.batch.edge_index
            at_source, at_target = (gradient, x) if ctx.backwards else (x, gradient)
            for_weight = (at_source.index_select(0, source) * at_target.index_select(0, target)).sum(1)
        return for_x, for_weight, None, None


def _bag_sums(x: Tensor, weight: Tensor | None, batch: Batch, backwards: bool) -> Tensor:
    if backwards:
        order, indptr, index = batch.outgoing
        weight = None if weight is None else weight.index_select(0, order)
    else:
        index, indptr = batch.edge_index[0], batch.indptr
    # Detached, so that torch does not prepare its own backward pass, which is not used.
    x, weight = x.detach(), None if weight is None else weight.detach()
    return torch.embedding_bag(x, index, indptr, mode=0, per_sample_weights=weight, include_last_offset=True)[0]


def padded_slots(batch: Batch, width: int) -> Tensor:
    """Return (N,) row of each node in a layout where every graph takes ``width`` rows."""
    graphs = torch.arange(batch.num_graphs, device=batch.ptr.device)
    shift = graphs * width - batch.ptr[:-1]
    return torch.arange(batch.num_nodes, device=batch.ptr.device) + shift[batch.batch]


def block_sum(x: Tensor, blocks: Tensor, slots: Tensor) -> Tensor:
    """Return (N, d): for each node i of a graph the sum over its nodes j of ``blocks[graph, i, j] x_j``.

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
        return _block_product(x, blocks, slots)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        blocks, slots = ctx.saved_tensors
        return _BlockSum.apply(gradient, blocks.transpose(1, 2), slots), None, None  # type: ignore[no-untyped-call]


def _block_product(x: Tensor, blocks: Tensor, slots: Tensor) -> Tensor:
    graphs, width, _ = blocks.shape
    padded = x.new_zeros((graphs * width, x.size(1))).index_copy_(0, slots, x)
    product = torch.bmm(blocks, padded.view(graphs, width, -1))
    return product.view(graphs * width, -1).index_select(0, slots)
