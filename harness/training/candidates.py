"""Keeping and weighting the quantifiers' candidates: done when they are read, so that M and tau cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from harness.errors import UserError


@dataclass(frozen=True)
class Kept:
    """The kept candidates.

    Attributes:
        spurious: (n, K, C) class probabilities of the training graphs.
        scores: (K,) validation scores, ascending.
        weights: (K,), summing to one.
        chosen: positions of the kept candidates among those given.
        flags: what encoder and quantifier noted of them, each once.
    """

    spurious: Tensor
    scores: Tensor
    weights: Tensor
    chosen: tuple[int, ...]
    flags: tuple[str, ...] = ()


def keep_lowest(
    probabilities: Tensor,
    candidates: Sequence[dict[str, Any]],
    split: str,
    *,
    keep: int,
    tau: float,
    weighting: str,
) -> Kept:
    """Keep the M candidates that transfer worst to validation, and weight them.

    Yao et al., *Empowering Graph Invariance Learning with Deep Spurious Infomax*, ICML 2024: the weights are a
    softmax over minus the validation scores, divided by a temperature. Ties keep the first candidate.

    Args:
        probabilities: (K_all, n, C).
        candidates: one row per candidate with ``train_score`` and ``scores[split]``, as fractions.
        weighting: ``weighted``, ``average`` or ``single`` (only the lowest).

    Raises:
        UserError: no candidate is eligible.
    """
    eligible = [
        (row["scores"][split], position) for position, row in enumerate(candidates) if row["scores"][split] is not None
    ]
    if not eligible:
        raise UserError(f"none of {len(candidates)} quantifiers has a score on '{split}'")
    lowest = sorted(eligible)[: 1 if weighting == "single" else keep]
    scores = torch.tensor([score for score, _ in lowest], dtype=torch.float32)
    chosen = tuple(position for _, position in lowest)
    if weighting == "weighted":
        weights = torch.softmax(-(scores - scores.min()) / max(tau, 1e-6), dim=0)
    else:
        weights = torch.full_like(scores, 1.0 / len(scores))
    spurious = probabilities[list(chosen)].transpose(0, 1).contiguous()
    flags = dict.fromkeys(flag for position in chosen for flag in candidates[position].get("flags", ()))
    return Kept(spurious, scores, weights, chosen, tuple(flags))
