"""Runs the checks of a component's kind and gathers what they found."""

from __future__ import annotations

import inspect
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from harness.component import Component
from harness.testing import learner_hparams, learner_odd, learner_prediction, learner_training
from harness.testing.report import CheckFunction, Outcome, Report, Skip
from harness.testing.subject import LearnerSubject

LEARNER = (
    *learner_training.CHECKS,
    *learner_prediction.CHECKS,
    *learner_odd.CHECKS,
    *learner_hparams.CHECKS,
)
KINDS: dict[str, tuple[Callable[[Any], Any], tuple[CheckFunction, ...]]] = {
    "baseline": (LearnerSubject, LEARNER),
    "decorrelator": (LearnerSubject, LEARNER),
}


def checks_of(kind: str) -> tuple[CheckFunction, ...]:
    """The checks that components of a kind must pass; none for kinds without a contract to test."""
    return KINDS[kind][1] if kind in KINDS else ()


def subject_of(cls: type[Component]) -> Any:
    """What the checks of a component share."""
    return KINDS[cls.kind][0](cls)


def run_check(check: CheckFunction, subject: Any) -> Outcome:
    """One check; an exception counts as a problem."""
    name, about = check.__name__, (inspect.getdoc(check) or "").partition("\n")[0]
    try:
        problems = tuple(check(subject))
    except Skip as reason:
        return Outcome(name, about, "skipped", (str(reason),))
    except Exception as error:
        return Outcome(name, about, "failed", (_told(error),))
    return Outcome(name, about, "failed" if problems else "ok", problems)


def check_component(cls: type[Component], data_dir: Path | None = None) -> Report:
    """Run every check on a component.

    Args:
        cls: a component's class; it need not be registered.
    """
    started = time.perf_counter()
    checks = checks_of(cls.kind)
    before = torch.get_rng_state()
    subject = subject_of(cls) if checks else None
    outcomes = tuple(run_check(check, subject) for check in checks)
    if not torch.equal(before, torch.get_rng_state()):
        problem = "torch's global generator is not as it was before the checks"
        outcomes = (*outcomes, Outcome("global_state_outside", "Global state stays.", "failed", (problem,)))
    return Report(cls.kind, cls.name, outcomes, time.perf_counter() - started)


def _told(error: Exception) -> str:
    """Type, text and place of an exception: the deepest line outside of torch and the kit."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}, line {frames[-1].lineno})" if frames else ""
    return f"raised {type(error).__name__}: {error}{where}"
