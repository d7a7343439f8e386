"""Evaluation mode, or fixed running statistics, for the length of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase


@contextmanager
def evaluating(*modules: nn.Module) -> Iterator[None]:
    """Put modules into evaluation mode, then give each of their parts the mode that it had.

    For passes that are no part of training, such as embedding all graphs in order to cluster them: they must neither
    drop out nor move BatchNorm's running statistics. Gradients are left as they are; see :func:`torch.no_grad`.
    """
    modes = [(part, part.training) for module in modules for part in module.modules()]
    for module in modules:
        module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def keeping_statistics(*modules: nn.Module) -> Iterator[None]:
    """Let BatchNorm normalise by the batch, as in training, without moving its running statistics; InstanceNorm too.

    For passes over inputs that are never predicted from, such as the left-over part of a graph: running statistics
    that mix them in would not fit what evaluation sees. Gradients are as ever.
    """
    norms = [part for module in modules for part in module.modules() if isinstance(part, _NormBase)]
    before = [(part.momentum, part.track_running_stats) for part in norms]
    for part in norms:
        part.momentum = 0.0
        if isinstance(part, _BatchNorm):
            part.track_running_stats = False  # so that torch's own does not count batches
    try:
        yield
    finally:
        for part, (momentum, tracked) in zip(norms, before, strict=True):
            part.momentum, part.track_running_stats = momentum, tracked
