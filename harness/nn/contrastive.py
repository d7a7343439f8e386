"""Contrastive losses on graph embeddings."""

from __future__ import annotations

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
    """Mean over the anchors with a positive of ``-mean_{p positive} [s_ip - log sum_{a in others} exp s_ia]``.

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
