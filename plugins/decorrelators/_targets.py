"""The common part of decorrelators: the weight of a graph, given the spurious vote for its label."""

from __future__ import annotations

import torch
from torch import Tensor


def omega(votes: Tensor, gamma: float) -> Tensor:
    """(1 - s^gamma) / gamma, entry by entry: 0 at s = 1, rising to 1/gamma at s = 0 (Yao et al., ICML 2024).

    The limit gamma = 0 is -log s, cut off where s is below 1e-12.
    """
    return omega_of_log(votes.clamp(min=0.0 if gamma > 0 else 1e-12).log(), gamma)


def omega_of_log(log_votes: Tensor, gamma: float) -> Tensor:
    """:func:`omega` of s given as log s: exact for small gamma, and with finite gradients where s underflows."""
    return -log_votes if gamma == 0 else -torch.expm1(gamma * log_votes) / gamma


def of_label(values: Tensor, y: Tensor) -> Tensor:
    """(B, K) entries of (B, K, C) values at each graph's label (B,)."""
    index = y.reshape(-1, 1, 1).expand(-1, values.size(1), 1)
    return values.gather(2, index).squeeze(2)


def mean_vote(spurious: Tensor, weights: Tensor) -> Tensor:
    """(B, 1, C) average of (B, K, C) class probabilities under quantifier weights (K,)."""
    return (spurious * weights.reshape(1, -1, 1)).sum(1, keepdim=True)
