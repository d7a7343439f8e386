"""Normalisation that no batch can break."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation of (N, d) rows (Ioffe and Szegedy, *Batch Normalization*, ICML 2015), with a rule for N < 2.

    One row has no variance: ``nn.BatchNorm1d`` raises on it in training. Here fewer than two rows are normalised
    with the running statistics, as in evaluation, and leave these as they are. Weights and buffers are those of
    ``nn.BatchNorm1d``; ``num_batches_tracked``, which only matters for ``momentum=None``, stays at zero.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__(num_features, eps=eps, momentum=momentum)

    def forward(self, input: Tensor) -> Tensor:
        """(N, d) to (N, d)."""
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
