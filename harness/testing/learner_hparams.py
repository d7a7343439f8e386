"""Check that each hyperparameter of a learner does something."""

from __future__ import annotations

from collections.abc import Iterator

from harness.testing.bench import differs
from harness.testing.report import CheckFunction
from harness.testing.settings import every_choice_matters, pairs
from harness.testing.subject import LearnerSubject


def hyperparameters_matter(subject: LearnerSubject) -> Iterator[str]:
    """Changing a hyperparameter, where it is declared active, changes trained weights or predictions."""
    for name, declared in subject.cls.hparams.items():
        if declared.weight_of:
            continue  # `weights_matter` has it
        compared = pairs(subject.cls, name, subject.base)
        if not compared:
            yield f"'{name}': no second value to try; declare `choices` or `search`, or give one in `probes`"
            continue
        unchanged = []
        for one, two in compared:
            changes = differs(subject.result(one), subject.result(two))
            if not changes:
                unchanged.append(two)
            elif not every_choice_matters(declared):
                unchanged = []
                break
        if unchanged:
            first = compared[0][0][name]
            second = " and ".join(str(two[name]) for two in unchanged)
            others = {n: v for n, v in compared[0][0].items() if n != name}
            given = f", given {others}" if others else ""
            yield (
                f"'{name}': {second} trains exactly like {first}{given}; declare when it matters (`active`, or "
                "`probes` with settings that show it)"
            )


CHECKS: tuple[CheckFunction, ...] = (hyperparameters_matter,)
