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
    itself = torch.eye(len(y), dtype=torch.bool, device=z.device)
    positive = (y.unsqueeze(0) == y.unsqueeze(1)) & ~itself
    count = positive.sum(1)
    if not bool((count > 0).any()):
        return z.sum() * 0.0
    unit = F.normalize(z, dim=1)
    similarity = (unit @ unit.T) / temperature
    log_share = similarity - similarity.masked_fill(itself, -torch.inf).logsumexp(1, keepdim=True)
    anchors = count > 0
    of_anchor = (log_share * positive).sum(1)[anchors] / count[anchors]
    return -of_anchor.mean()
