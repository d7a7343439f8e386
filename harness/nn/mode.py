"""Evaluation mode for the length of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


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
