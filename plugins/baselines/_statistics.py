"""The hyperparameter of methods with a second pass: whose statistics BatchNorm's running ones follow."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn

from harness import Baseline, hparam
from harness.nn import keeping_statistics

MIXED = {"statistics": ("both",)}
"""The setting with which they follow both, for ``foreign_statistics``."""


def statistics_switch(active: Mapping[str, Sequence[Any]] | None = None) -> str:
    """The hyperparameter ``statistics``; :func:`second_pass` reads it."""
    return hparam(
        "prediction",
        choices=["prediction", "both"],
        active=active,
        help="BatchNorm's running statistics follow the prediction's pass, or the second pass too",
    )


def second_pass(learner: Baseline, *modules: nn.Module) -> AbstractContextManager[None]:
    """For a pass in training through modules that also predict, over inputs that are never predicted from."""
    return nullcontext() if learner.statistics == "both" else keeping_statistics(*modules)
