"""Environment ids as components give them, and statistics of those present in a batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from harness.data import Task
from harness.nn.losses import has_label


def check_ids(ids: Any, graphs: int, number: int | None = None) -> None:
    """Refuse ids that are not integers, one per graph, counted from 0; -1 stands for none.

    Nothing is allocated by the size of an id.

    Args:
        ids: what a component gave.
        graphs: how many graphs there are.
        number: of environments: ids are below it. None: some graph has one, and none from 0 to the largest is missing.

    Raises:
        ValueError: the text says what came and what is allowed.
    """
    if not isinstance(ids, Tensor) or ids.dtype != torch.int64 or ids.shape != (graphs,):
        found = f"{ids.dtype} of shape {tuple(ids.shape)}" if isinstance(ids, Tensor) else type(ids).__name__
        raise ValueError(f"the ids are {found} for {graphs} graphs; expected a tensor of torch.int64, one id per graph")
    present = torch.unique(ids)
    known = present[present >= 0]
    low, high = int(present[0]), int(present[-1])
    if low < -1 or (number is not None and high >= number):
        raise ValueError(f"there are ids from {low} to {high}; expected {_told(number)}, or -1 for none")
    if number is None and (not len(known) or high >= len(known)):
        raise ValueError(f"{len(known)} environments have ids up to {high}; expected {_told(number)} without a gap")


def _told(number: int | None) -> str:
    return "0, 1, 2 …" if number is None else f"0 to {number - 1}"


def labelled_environments(env: Tensor, y: Tensor, task: Task) -> Tensor:
    """Return (B,) ids, -1 for graphs without any label: they count in no environment.

    Args:
        env: (B,) ids; negative ids belong to no environment.
        y: (B,) labels, or (B, T) of a multi-task set, NaN where missing.
        task: what the labels are.
    """
    return torch.where(has_label(y, task), env, torch.full_like(env, -1))


def environment_mean(values: Tensor, env: Tensor, *, at_least: int = 1, share: Tensor | None = None) -> Tensor:
    """Return (P,) means over the environments present in a batch, in ascending order of their ids.

    Args:
        values: (B,) or (B, d), one row per graph.
        env: (B,) ids; negative ids belong to no environment.
        at_least: environments with fewer graphs than this are left out.
        share: (B,) what each graph counts in its value (``label_share`` of a learner), so that in an environment's
            mean, too, it counts that.
    """
    ids, inverse, counts = torch.unique(env, return_inverse=True, return_counts=True)
    means = _means(values, inverse, counts)
    if share is not None:
        counted = _means(share, inverse, counts)
        means = means / torch.where(counted > 0, counted, torch.ones_like(counted))
    return _kept(means, (ids >= 0) & (counts >= at_least))


def environment_variance(values: Tensor, env: Tensor) -> Tensor:
    """Return (P, d) variances (over n - 1) of each column within each environment of two graphs or more.

    Args:
        values: (B, d), one row per graph.
        env: (B,) ids; negative ids belong to no environment.
    """
    ids, inverse, counts = torch.unique(env, return_inverse=True, return_counts=True)
    centred = values - _means(values, inverse, counts).index_select(0, inverse)
    sums = values.new_zeros(len(ids), values.size(1)).index_add_(0, inverse, centred.square())
    return _kept(sums / (counts - 1).clamp(min=1).unsqueeze(1), (ids >= 0) & (counts > 1))


def environment_moments(values: Tensor, env: Tensor) -> tuple[Tensor, Tensor]:
    """Return (P, d) means and (P, d, d) covariances (over n - 1) of the environments of two graphs or more.

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
    """Return (B,) number of graphs of each graph's environment."""
    return (env.unsqueeze(0) == env.unsqueeze(1)).sum(1)


def position_in_environment(env: Tensor) -> Tensor:
    """Return (B,) number of earlier graphs of the same environment."""
    return (env.unsqueeze(0) == env.unsqueeze(1)).tril(-1).sum(1)


def _means(values: Tensor, inverse: Tensor, counts: Tensor) -> Tensor:
    sums = values.new_zeros((len(counts), *values.shape[1:])).index_add_(0, inverse, values)
    means: Tensor = sums / counts.reshape(-1, *([1] * (values.dim() - 1))).to(values.dtype)
    return means


def _kept(rows: Tensor, keep: Tensor) -> Tensor:
    """Return the rows to keep; where all are, without an index, whose backward pass is slow on few rows."""
    return rows if bool(keep.all()) else rows[keep]
