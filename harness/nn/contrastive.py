"""Contrastive and mutual-information losses on embeddings of graphs and nodes."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def supervised_contrastive(z: Tensor, y: Tensor, temperature: float = 1.0) -> Tensor:
    """Pull the embeddings of one class together, against all others of the batch: a live scalar.

    The loss of Khosla et al. (*Supervised Contrastive Learning*, NeurIPS 2020), the sum over positives outside the
    logarithm: for anchor i with positives P_i = {j ≠ i: y_j = y_i} and cosine similarities s,
    ``-mean_{p in P_i} [s_ip - log sum_{a ≠ i} exp s_ia]``, averaged over the anchors that have a positive. A batch
    without any positive gives a zero that keeps the graph.

    Args:
        z: (B, d) embeddings; their length does not matter, and a zero row is similar to nothing.
        y: (B,) classes.
        temperature: divides the similarities.
    """
    y = y.reshape(-1)
    others = ~torch.eye(len(y), dtype=torch.bool, device=z.device)
    return _contrast(z, (y.unsqueeze(0) == y.unsqueeze(1)) & others, others, temperature)


def environment_contrastive(z: Tensor, y: Tensor, env: Tensor, temperature: float = 1.0) -> Tensor:
    """Pull one class together across environments, against other classes of the same environment: a live scalar.

    The loss of Chen et al. (*Does Invariant Graph Learning via Environment Augmentation Learn Invariance?*, NeurIPS
    2023): that of :func:`supervised_contrastive` with P_i = {j: y_j = y_i, e_j ≠ e_i}, and in the logarithm only P_i
    and {j: y_j ≠ y_i, e_j = e_i}. It is never negative. A batch in which no graph has a positive gets
    :func:`supervised_contrastive` instead, which needs no environments.

    Args:
        z: (B, d) embeddings; their length does not matter.
        y: (B,) classes.
        env: (B,) environment ids.
        temperature: divides the similarities.
    """
    y = y.reshape(-1)
    alike, together = y.unsqueeze(0) == y.unsqueeze(1), env.unsqueeze(0) == env.unsqueeze(1)
    positive = alike & ~together
    if not bool(positive.any()):
        return supervised_contrastive(z, y, temperature)
    return _contrast(z, positive, alike ^ together, temperature)


def _contrast(z: Tensor, positive: Tensor, others: Tensor, temperature: float) -> Tensor:
    """Average ``-mean_{p positive} [s_ip - log sum_{a in others} exp s_ia]`` over the anchors with a positive.

    Args:
        z: (B, d) embeddings.
        positive: (B, B) bool, row i the positives of anchor i.
        others: (B, B) bool, the graphs in the logarithm, positives among them.
        temperature: divides the cosine similarities.
    """
    count = positive.sum(1)
    anchors = (count > 0).nonzero().squeeze(1)
    if not len(anchors):
        return z.sum() * 0.0
    unit = F.normalize(z, dim=1)
    # Rows without a positive go first: where nothing is in the logarithm its gradient is not a number.
    similarity = ((unit @ unit.T) / temperature)[anchors]
    log_share = similarity - similarity.masked_fill(~others[anchors], -torch.inf).logsumexp(1, keepdim=True)
    return -((log_share * positive[anchors]).sum(1) / count[anchors]).mean()


def local_global_jsd(graphs: Tensor, nodes: Tensor, owner: Tensor) -> Tensor:
    """Return the Jensen-Shannon estimate between graph and node vectors, to minimise; 0 where none is told apart.

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
    """Return NT-Xent between two views of the same graphs, symmetrised over the two directions: a live scalar.

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
