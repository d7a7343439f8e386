"""Runs the checks of a component's kind and gathers what they found."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.component import Component
from harness.engine.failures import place_in_plugin
from harness.testing import (
    analyses,
    backbones,
    datasets,
    device,
    encoders,
    environments,
    learner_hparams,
    learner_odd,
    learner_prediction,
    learner_statistics,
    learner_training,
    quantifiers,
    trackers,
)
from harness.testing.learner_case import LearnerSubject
from harness.testing.report import CheckFunction, Note, Outcome, Report, Skip
from harness.testing.rng import scrambled
from harness.testing.rules import rule_of
from harness.testing.source_lines import place_of_problem
from harness.testing.studies import AnalysisSubject

LEARNER = (
    *learner_training.CHECKS,
    *learner_prediction.CHECKS,
    *learner_statistics.CHECKS,
    *learner_odd.CHECKS,
    *learner_hparams.CHECKS,
    device.learner_on_another_device,
)


def checks_of(kind: str) -> tuple[CheckFunction, ...]:
    """The checks that components of a kind must pass; none for kinds without a contract to test."""
    known: dict[str, tuple[CheckFunction, ...]] = {
        "baseline": LEARNER,
        "decorrelator": LEARNER,
        "encoder": (*encoders.CHECKS, device.encoder_on_another_device),
        "quantifier": quantifiers.CHECKS,
        "environment": (*environments.CHECKS, device.environment_on_another_device),
        "dataset": datasets.CHECKS,
        "backbone": (*backbones.CHECKS, device.backbone_on_another_device),
        "analysis": analyses.CHECKS,
        "tracker": trackers.CHECKS,
    }
    return known.get(kind, ())


def subject_of(cls: type[Component], data_dir: Path | None = None) -> Any:
    """What the checks of a component share."""
    if cls.kind == "dataset":
        return datasets.DatasetSubject(cls, data_dir)  # type: ignore[arg-type]
    known: dict[str, Any] = {
        "encoder": encoders.EncoderSubject,
        "quantifier": quantifiers.QuantifierSubject,
        "environment": environments.EnvironmentSubject,
        "backbone": backbones.BackboneSubject,
        "analysis": AnalysisSubject,
        "tracker": trackers.TrackerSubject,
    }
    return known.get(cls.kind, LearnerSubject)(cls)


def about_check(check: CheckFunction) -> tuple[str, str]:
    """A check's name, and what it holds a component to."""
    rule = rule_of(check)
    return rule.id, rule.about


def run_check(check: CheckFunction, subject: Any) -> Outcome:
    """One check; an exception, or an attempt to end the process, counts as a problem."""
    rule = rule_of(check)
    found: list[str] = []
    raised = ""
    try:
        with scrambled(rule.id):
            found += check(subject)
    except Skip as reason:
        return Outcome(rule.id, rule.about, "skipped", (str(reason),))
    except (Exception, SystemExit) as error:
        raised = place_in_plugin(error)
        found.append(f"raised {type(error).__name__}: {error}")
    problems = tuple(text for text in found if not isinstance(text, Note))
    notes = tuple(text for text in found if isinstance(text, Note))
    places = [place_of_problem(subject.cls, text, rule.methods) for text in problems]
    if raised:
        places[-1] = raised
    return Outcome(
        rule.id,
        rule.about,
        "failed" if problems else "ok",
        problems,
        notes,
        tuple(places),
        rule.cause if problems else "",
    )


def check_component(
    cls: type[Component], data_dir: Path | None = None, tell: Callable[[tuple[str, Any]], None] | None = None
) -> Report:
    """Run every check on a component.

    Args:
        cls: a component's class; it need not be registered.
        data_dir: where data files are, for datasets that read some.
        tell: receives ``("begins", (name, about))`` and ``("found", outcome)`` of each check.
    """
    started = time.perf_counter()
    subject = subject_of(cls, data_dir)
    outcomes = []
    for check in checks_of(cls.kind):
        if tell is not None:
            tell(("begins", about_check(check)))
        outcomes.append(run_check(check, subject))
        if tell is not None:
            tell(("found", outcomes[-1]))
    return Report(cls.kind, cls.name, tuple(outcomes), time.perf_counter() - started)
