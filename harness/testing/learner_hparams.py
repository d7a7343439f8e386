"""Check that each hyperparameter of a learner does something."""

from __future__ import annotations

from collections.abc import Iterator

from harness.testing.learner_case import LearnerSubject
from harness.testing.report import CheckFunction
from harness.testing.rig import differs
from harness.testing.settings import effects_as_declared


def hyperparameters_matter(subject: LearnerSubject) -> Iterator[str]:
    """Changing a hyperparameter, where it is declared active, changes trained weights or predictions.

    Cause: nothing reads `self.NAME`; or it is read in one mode only (declare `active`), or its effect needs other
    settings than three short epochs (give them in `probes`).

    Look at: loss
    """
    subject.watched()
    weights = [name for name, declared in subject.cls.hparams.items() if declared.weight_of]
    yield from effects_as_declared(
        subject.cls, subject.base, lambda one, two: differs(subject.result(one), subject.result(two)), weights
    )


def other_settings(subject: LearnerSubject) -> Iterator[str]:
    """With each other setting that was tried, values are finite, modules in training mode, and global state is safe.

    Cause: a division by zero, a mode left in evaluation or a global draw that only this setting reaches.

    Look at: loss, training_step
    """
    subject.watched()
    for values, seen in subject.tried():
        given = ", ".join(f"{name}={value}" for name, value in values.items())
        for what in seen.not_finite if values else ():
            yield f"with {given}: {what} is not finite"
        for name in sorted(seen.left_in_eval) if values else ():
            yield f"with {given}: '{name}' is in evaluation mode after a training step"
        for what in seen.seeding if values else ():
            yield f"with {given}: {what}"


CHECKS: tuple[CheckFunction, ...] = (hyperparameters_matter, other_settings)
