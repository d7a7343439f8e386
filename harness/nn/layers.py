"""Layers of networks: linear map, normalisation, classifier head and readout; and their modes for a block of code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase

from harness.graphs import Batch


class Linear(nn.Linear):
    """``nn.Linear`` with the same weights, whose (out, in) matrix lies in memory column by column.

    The product of (N, in) rows and the transposed weights then reads both row by row, and autograd picks the order of
    factors for the weights' gradient by it. Where a layer is wider than its input, as the first map of a GIN layer
    is, torch's usual order costs up to five times as much. Names, start, copies and stored files are
    those of ``nn.Linear``; ``load_state_dict`` keeps the layout. It takes a
    ``reshape`` where contiguous weights would take a ``view``.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias)
        self.weight = nn.Parameter(self.weight.detach().t().contiguous().t())


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation of (N, d) rows (Ioffe and Szegedy, *Batch Normalization*, ICML 2015), with a rule for N < 2.

    One row has no variance: ``nn.BatchNorm1d`` raises on it in training. Here fewer than two rows are normalised
    with the running statistics, as in evaluation, and leave these as they are. Weights and buffers are those of
    ``nn.BatchNorm1d``; ``num_batches_tracked``, which only matters for ``momentum=None``, stays at zero.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__(num_features, eps=eps, momentum=momentum)

    def forward(self, input: Tensor) -> Tensor:
        """Map (N, d) to (N, d)."""
        return F.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            training=self.training and input.size(0) > 1,
            momentum=self.momentum or 0.0,
            eps=self.eps,
        )


class MLPHead(nn.Sequential):
    """``hidden_layers`` times (Linear, ReLU) of the input's width, then a Linear to the logits."""

    def __init__(self, in_dim: int, out_dim: int, hidden_layers: int) -> None:
        layers: list[nn.Module] = []
        for _ in range(hidden_layers):
            layers += [Linear(in_dim, in_dim), nn.ReLU(inplace=True)]
        super().__init__(*layers, Linear(in_dim, out_dim))


def pool(nodes: Tensor, batch: Batch, how: str = "sum") -> Tensor:
    """Return (B, d) graph embeddings; a graph without nodes gets zeros.

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


@contextmanager
def evaluating(*modules: nn.Module) -> Iterator[None]:
    """Put modules into evaluation mode, then give each of their parts the mode that it had.

    For passes that are no part of training, such as embedding all graphs in order to cluster them: they must neither
    drop out nor move BatchNorm's running statistics. Gradients are left as they are; see :func:`torch.no_grad`.
    """
    modes = [(part, part.training) for module in modules for part in module.modules()]
    for module in modules:
        module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def keeping_statistics(*modules: nn.Module) -> Iterator[None]:
    """Let BatchNorm normalise by the batch, as in training, without moving its running statistics; InstanceNorm too.

    For passes over inputs that are never predicted from, such as the left-over part of a graph: running statistics
    that mix them in would not fit what evaluation sees. Gradients are as ever.
    """
    norms = [part for module in modules for part in module.modules() if isinstance(part, _NormBase)]
    before = [(part.momentum, part.track_running_stats) for part in norms]
    for part in norms:
        part.momentum = 0.0
        if isinstance(part, _BatchNorm):
            part.track_running_stats = False  # so that torch's own does not count batches
    try:
        yield
    finally:
        for part, (momentum, tracked) in zip(norms, before, strict=True):
            part.momentum, part.track_running_stats = momentum, tracked
