"""Statistics of the environments present in a batch, shared by every method that compares them."""

from __future__ import annotations

import torch
from torch import Tensor

from harness.data import Task
from harness.training.losses import has_label


def labelled_environments(env: Tensor, y: Tensor, task: Task) -> Tensor:
    """(B,) ids, -1 for graphs without any label: they count in no environment.

    Args:
        env: (B,) ids; negative ids belong to no environment.
        y: (B,) labels, or (B, T) of a multi-task set, NaN where missing.
        task: what the labels are.
    """
    return torch.where(has_label(y, task), env, torch.full_like(env, -1))


def environment_mean(values: Tensor, env: Tensor, *, at_least: int = 1) -> Tensor:
    """(P,) means over the environments present in a batch, in ascending order of their ids.

    Args:
        values: (B,) or (B, d), one row per graph.
        env: (B,) ids; negative ids belong to no environment.
        at_least: environments with fewer graphs than this are left out.
    """
    ids, inverse, counts = torch.unique(env, return_inverse=True, return_counts=True)
    return _kept(_means(values, inverse, counts), (ids >= 0) & (counts >= at_least))


def environment_variance(values: Tensor, env: Tensor) -> Tensor:
    """(P, d) variances (over n - 1) of each column within each environment of two graphs or more.

    Args:
        values: (B, d), one row per graph.
        env: (B,) ids; negative ids belong to no environment.
    """
    ids, inverse, counts = torch.unique(env, return_inverse=True, return_counts=True)
    centred = values - _means(values, inverse, counts).index_select(0, inverse)
    sums = values.new_zeros(len(ids), values.size(1)).index_add_(0, inverse, centred.square())
    return _kept(sums / (counts - 1).clamp(min=1).unsqueeze(1), (ids >= 0) & (counts > 1))


def environment_moments(values: Tensor, env: Tensor) -> tuple[Tensor, Tensor]:
    """(P, d) means and (P, d, d) covariances (over n - 1) of the environments of two graphs or more.

    Args:
        values: (B, d), one row per graph.
        env: (B,) ids; negative ids belong to no environment.
    """
    ids, inverse, counts = torch.unique(env, return_inverse=True, return_counts=True)
    kept = (ids >= 0) & (counts > 1)
    means = _means(values, inverse, counts)
    centred = values - means.index_select(0, inverse)
    member = (inverse.unsqueeze(0) == kept.nonzero()).to(values.dtype)
    products = (centred.unsqueeze(0) * member.unsqueeze(2)).transpose(1, 2) @ centred
    covariances: Tensor = products / (counts[kept] - 1).reshape(-1, 1, 1)
    return means[kept], covariances


def environment_size(env: Tensor) -> Tensor:
    """(B,) number of graphs of each graph's environment."""
    return (env.unsqueeze(0) == env.unsqueeze(1)).sum(1)


def position_in_environment(env: Tensor) -> Tensor:
    """(B,) number of earlier graphs of the same environment."""
    return (env.unsqueeze(0) == env.unsqueeze(1)).tril(-1).sum(1)


def _means(values: Tensor, inverse: Tensor, counts: Tensor) -> Tensor:
    sums = values.new_zeros((len(counts), *values.shape[1:])).index_add_(0, inverse, values)
    means: Tensor = sums / counts.reshape(-1, *([1] * (values.dim() - 1))).to(values.dtype)
    return means


def _kept(rows: Tensor, keep: Tensor) -> Tensor:
    """The rows to keep; mostly all are, and then the way back through an index, slow on few rows, is not taken."""
    return rows if bool(keep.all()) else rows[keep]
