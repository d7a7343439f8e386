"""Mutual-information objectives of self-supervised graph encoders."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def local_global_jsd(graphs: Tensor, nodes: Tensor, owner: Tensor) -> Tensor:
    """Jensen-Shannon estimate between graph and node vectors: a scalar to minimise, 0 where nothing is told apart.

    With similarities s = <graph, node>, positives the pairs (graph, own node) and negatives all other pairs,
    ``mean_neg [softplus(s) - ln 2] - mean_pos [ln 2 - softplus(-s)]``, at best -2 ln 2. Nowozin, Cseke and
    Tomioka, *f-GAN*, NeurIPS 2016; Hjelm et al., *Deep InfoMax*, ICLR 2019, eq. 4; between views of a
    graph Hassani and Khasahmadi, *Contrastive Multi-View Representation Learning on Graphs*, ICML 2020. One (B, N)
    matrix is kept for the backward pass, and no mask is built.

    Args:
        graphs: (B, d), B at least 2.
        nodes: (N, d).
        owner: (N,) graph of each node.

    Raises:
        ValueError: there is one graph only, hence no negative pair.
    """
    if graphs.size(0) < 2:
        raise ValueError("a local-global contrast needs at least two graphs in a batch")
    return _LocalGlobalJSD.apply(graphs, nodes, owner)  # type: ignore[no-any-return, no-untyped-call]


class _LocalGlobalJSD(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, graphs: Tensor, nodes: Tensor, owner: Tensor) -> Tensor:
        similarity = graphs @ nodes.T
        positive = similarity.gather(0, owner.unsqueeze(0)).squeeze(0)
        ctx.save_for_backward(graphs, nodes, owner, similarity, positive)
        negatives = nodes.size(0) * (graphs.size(0) - 1)
        # the sums differ by the positives only; float64 keeps what is left of their difference
        others = F.softplus(similarity).sum(dtype=torch.float64) - F.softplus(positive).sum(dtype=torch.float64)
        loss = others / negatives + F.softplus(-positive).mean(dtype=torch.float64) - 2 * math.log(2)
        return loss.to(similarity.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        graphs, nodes, owner, similarity, positive = ctx.saved_tensors
        negatives = nodes.size(0) * (graphs.size(0) - 1)
        slope = torch.sigmoid(similarity).mul_(gradient / negatives)
        slope.scatter_(0, owner.unsqueeze(0), (torch.sigmoid(-positive) * (-gradient / nodes.size(0))).unsqueeze(0))
        return slope @ nodes, slope.T @ graphs, None


def info_nce(
    first: Tensor,
    second: Tensor,
    temperature: float = 0.2,
    *,
    exclude_positive: bool = False,
    one_direction: bool = False,
) -> Tensor:
    """NT-Xent between two views of the same graphs, symmetrised over the two directions: a live scalar.

    With cosine similarities s, ``-mean_i log(exp(s_ii / T) / sum_j exp(s_ij / T))`` and the same with the views'
    roles exchanged, halved. Chen et al., *SimCLR*, ICML 2020, eq. 1; You et al., *Graph Contrastive Learning with
    Augmentations*, NeurIPS 2020, eq. 3. The logarithm of the sum is taken stably, so any temperature will do.

    Args:
        first, second: (B, d), row i of each from graph i; B at least 2.
        temperature: T.
        exclude_positive: leave j = i out of the sum, as in the second paper's equation; the loss may then be
            negative.
        one_direction: from the first view to the second alone.

    Raises:
        ValueError: there is one graph only, hence no negative pair.
    """
    if first.size(0) < 2:
        raise ValueError("a contrast between graphs needs at least two graphs in a batch")
    logits = F.normalize(first, dim=1) @ F.normalize(second, dim=1).T / temperature
    positive = logits.diagonal()
    if exclude_positive:
        logits = logits.masked_fill(torch.eye(len(logits), dtype=torch.bool, device=logits.device), -torch.inf)
    forth = logits.logsumexp(1)
    return (forth if one_direction else 0.5 * (logits.logsumexp(0) + forth)).mean() - positive.mean()
