"""Per-graph losses, shared by every learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from harness.data import Task
from harness.registry.returned import ReturnedError, expect, is_number


def per_sample_loss(logits: Tensor, y: Tensor, task: Task) -> Tensor:
    """Return (B,) loss of each graph.

    Cross-entropy for (B, C) logits and (B,) integer labels; for multi-task (B, T) logits and (B, T) labels,
    binary cross-entropy averaged over the tasks that are labelled (0 where a graph has none).
    """
    if task.kind != "multitask":
        return F.cross_entropy(logits, y.reshape(-1), reduction="none")
    labelled = ~torch.isnan(y)
    target = torch.where(labelled, y, torch.zeros_like(y))
    loss = F.binary_cross_entropy_with_logits(logits, target, reduction="none") * labelled
    return loss.sum(1) / labelled.sum(1).clamp(min=1)


def label_share(y: Tensor, task: Task, average_over: str) -> Tensor | None:
    """Return (B,) weights of the graphs in a batch's mean, one on average; None where all are equal (one task).

    Args:
        y: (B, T) labels of a multi-task set, NaN where missing; or of a single task, where none is.
        task: what the labels are.
        average_over: ``labels``: each label counts once, hence a graph by its labels; ``graphs``: each graph that has
            one counts once. A graph without any label counts nothing.
    """
    if task.kind != "multitask":
        return None
    labelled = ~torch.isnan(y)
    counts = labelled.sum(1) if average_over == "labels" else labelled.any(1)
    return counts * len(y) / counts.sum().clamp(min=1)


def has_label(y: Tensor, task: Task) -> Tensor:
    """Return (B,) bool: True for a graph with a label; of a multi-task set, for any of its tasks."""
    if task.kind != "multitask":
        return torch.ones(len(y), dtype=torch.bool, device=y.device)
    return ~torch.isnan(y).all(1)


def scale_gradient(logits: Tensor, y: Tensor, task: Task) -> Tensor:
    """Return (B,) derivative of each graph's loss with respect to a factor w on its logits, at w = 1.

    The closed form of the IRMv1 dummy gradient (Arjovsky et al., *Invariant Risk Minimization*, 2019):
    sum_k p_k z_k - z_y for cross-entropy; the mean of (sigmoid(z) - y) z over labelled tasks for multi-task.
    It is differentiable in the logits.
    """
    if task.kind != "multitask":
        expected = (logits.softmax(1) * logits).sum(1)
        return expected - logits.gather(1, y.reshape(-1, 1)).squeeze(1)
    labelled = ~torch.isnan(y)
    target = torch.where(labelled, y, torch.zeros_like(y))
    gradient = (logits.sigmoid() - target) * logits * labelled
    return gradient.sum(1) / labelled.sum(1).clamp(min=1)


def generalized_cross_entropy(logits: Tensor, y: Tensor, q: float) -> Tensor:
    """Return (B,) generalized cross-entropies (1 - p_y^q) / q: cross-entropy as q → 0, absolute error at q = 1.

    Zhang and Sabuncu, *Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels*,
    NeurIPS 2018, Eqn. 6.

    Args:
        logits: (B, C).
        y: (B,) classes.
        q: in (0, 1].
    """
    log_p = F.log_softmax(logits, 1).gather(1, y.reshape(-1, 1)).squeeze(1)
    return -torch.expm1(q * log_p) / q


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, alpha: float) -> Tensor:
        ctx.alpha = alpha
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -ctx.alpha * gradients[0], None


def reverse_gradient(values: Tensor, alpha: float = 1.0) -> Tensor:
    """Return the values unchanged; the backward pass multiplies their gradient by minus ``alpha``.

    Ganin et al., *Domain-Adversarial Training of Neural Networks*, JMLR 2016.
    """
    return _Reverse.apply(values, alpha)  # type: ignore[no-any-return, no-untyped-call]


def check_terms(learner: Any, terms: Any) -> None:
    """Refuse a value that is not a learner's loss terms by name.

    Raises:
        ReturnedError: it is no mapping, an empty one, or a term is no tensor of one number.
    """
    if not isinstance(terms, Mapping) or not terms:
        raise ReturnedError(
            f"{learner.kind} '{learner.name}', {type(learner).__name__}.loss returned {type(terms).__name__}; it must "
            'return the loss terms by name, at least one: {"erm": …}'
        )
    for name, term in terms.items():
        scalar = isinstance(term, Tensor) and term.numel() == 1 and term.is_floating_point()
        expect(scalar, learner, f"loss, '{name}'", term, "a tensor of one number")


def weighted_sum(learner: Any, terms: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    """Return the sum of a learner's loss terms, each times its weight; those of weight zero are left out.

    Raises:
        ReturnedError: a weight is no number.
        ValueError: all are zero.
    """
    for name, weight in weights.items():
        expect(is_number(weight), learner, f"weight('{name}')", weight, "a number")
    weighted = [term if weights[name] == 1.0 else weights[name] * term for name, term in terms.items() if weights[name]]
    if not weighted:
        raise ValueError(f"{type(learner).__name__}: every loss term ({', '.join(terms)}) has weight zero now")
    return torch.stack([term.reshape(()) for term in weighted]).sum() if len(weighted) > 1 else weighted[0]
