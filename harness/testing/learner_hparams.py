"""Check that each hyperparameter of a learner does something."""

from __future__ import annotations

from collections.abc import Iterator

from harness.testing.bench import differs
from harness.testing.report import CheckFunction
from harness.testing.settings import unchanged
from harness.testing.subject import LearnerSubject


def hyperparameters_matter(subject: LearnerSubject) -> Iterator[str]:
    """Changing a hyperparameter, where it is declared active, changes trained weights or predictions."""
    weights = [name for name, declared in subject.cls.hparams.items() if declared.weight_of]
    yield from unchanged(
        subject.cls, subject.base, lambda one, two: differs(subject.result(one), subject.result(two)), weights
    )


CHECKS: tuple[CheckFunction, ...] = (hyperparameters_matter,)
