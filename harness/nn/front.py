"""The first layer on raw node or edge features, chosen from the dataset's declaration."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.data import Features
from harness.nn.layers import Linear

_SMALL = 512
"""Up to this many codes in all, a product with a 0/1 matrix is the fastest way to sum an embedding's gradient."""


class CategoricalFront(nn.Module):
    """Sum of one embedding per column of codes, as in OGB's atom and bond encoders.

    Hu et al., *Open Graph Benchmark*, NeurIPS 2020. The tables lie one after the other in ``weight``; each is
    initialised by itself (Glorot uniform), as OGB does.
    """

    offsets: Tensor

    def __init__(self, sizes: tuple[int, ...], dim: int) -> None:
        super().__init__()
        starts = [0, *accumulate(sizes)]
        self.weight = nn.Parameter(torch.empty(starts[-1], dim))
        self.register_buffer("offsets", torch.tensor(starts[:-1]), persistent=False)
        for table in torch.split(self.weight, list(sizes)):
            nn.init.xavier_uniform_(table)

    def forward(self, codes: Tensor) -> Tensor:
        """Map (N, columns) codes, which :meth:`PackedGraphs.pack` has checked against the sizes, to (N, dim)."""
        if codes.is_floating_point():
            raise TypeError("categorical features are integer codes; to feed embeddings, build the network as numeric")
        return _TableSum.apply(self.weight, codes + self.offsets)  # type: ignore[no-any-return, no-untyped-call]


class ConstantFront(Linear):
    """One learnt vector for every node, where a dataset has no node features."""

    def __init__(self, dim: int) -> None:
        super().__init__(1, dim)

    def forward(self, input: Tensor) -> Tensor:
        """Map (N, 0) to (N, dim)."""
        return super().forward(input.new_ones((input.size(0), 1)))


def make_front(features: Features, dim: int) -> nn.Module:
    """Return a module from raw features (N, F) to (N, ``dim``): embeddings for codes, a linear map for numbers."""
    if features.kind == "categorical":
        return CategoricalFront(features.sizes, dim)
    if features.kind == "numeric":
        return Linear(features.sizes[0], dim)
    return ConstantFront(dim)


class _TableSum(torch.autograd.Function):
    """``weight[rows].sum(1)`` for rows (N, columns), distinct within a line."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.table = weight.size(0)
        return F.embedding_bag(rows, weight, mode="sum")

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (rows,) = ctx.saved_tensors
        if ctx.table > _SMALL:
            summed = gradient.new_zeros((ctx.table, gradient.size(1)))
            return summed.index_add(0, rows.reshape(-1), gradient.repeat_interleave(rows.size(1), 0)), None
        hot = gradient.new_zeros((rows.size(0), ctx.table)).scatter_(1, rows, 1.0)
        return hot.t() @ gradient, None
