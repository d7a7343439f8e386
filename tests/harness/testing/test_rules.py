"""What the kit tells an author of a failure: the rule, its likely cause and the line."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import planted_learners as learners
import planted_others as others
import pytest

from harness.component import KINDS, Component
from harness.testing import check_component
from harness.testing.rules import Rule, rule_of
from harness.testing.run import checks_of
from harness.testing.source_lines import place_of_problem

RULES = {kind: [rule_of(check) for check in checks_of(kind)] for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_each_rule_says_what_it_wants_and_why_it_may_fail(kind: str) -> None:
    assert RULES[kind]
    ids = [rule.id for rule in RULES[kind]]
    assert len(set(ids)) == len(ids)
    for rule in RULES[kind]:
        assert rule.about.endswith("."), rule.id
        assert rule.cause.endswith("."), rule.id
        assert rule.methods, rule.id
        assert "Look at" not in rule.cause


def test_a_rule_is_read_from_its_docstring() -> None:
    def dead_terms() -> None:
        """Terms live.

        Cause: a detached
        term: `x.detach()`.

        Look at: loss, build
        """

    assert rule_of(dead_terms) == Rule("dead_terms", "Terms live.", "a detached term: `x.detach()`.", ("loss", "build"))
    assert rule_of(lambda: None).cause == ""


def line_of(cls: type[Component], text: str) -> str:
    """The line of a class's source that holds a text, as a place."""
    lines, first = inspect.getsourcelines(cls)
    offset = next(number for number, line in enumerate(lines) if text in line)
    return f"{Path(inspect.getfile(cls)).name}:{first + offset}"


@pytest.mark.parametrize(
    ("cls", "rule", "owner", "text"),
    [
        (learners.DetachedPenalty, "live_terms", learners.Sound, 'return {"erm"'),
        (learners.DeadHyperparameter, "hyperparameters_matter", learners.DeadHyperparameter, ": float = hparam("),
        (learners.LostMask, "every_module_learns", learners.Masked, "self.scorer ="),
        (others.LabelInFeatures, "sealed", others.SoundDataset, "def build"),
    ],
)
def test_a_failure_names_the_line_and_the_cause(
    cls: type[Component], rule: str, owner: type[Component], text: str
) -> None:
    (outcome,) = [found for found in check_component(cls).with_status("failed") if found.check == rule]
    assert line_of(owner, text) in outcome.places
    assert len(outcome.places) == len(outcome.problems)
    (known,) = [item for item in RULES[cls.kind] if item.id == rule]
    assert outcome.cause == known.cause
    told = "\n".join(outcome.told)
    assert re.search(r"planted_\w+\.py:\d+: ", told)
    assert f"likely cause: {known.cause}" in told


def test_an_exception_names_the_author_s_line() -> None:
    report = check_component(learners.Exits)
    outcome = report.with_status("failed")[0]
    assert outcome.places[-1].startswith("planted_learners.py:")


def test_what_the_harness_raised_is_told_by_the_author_s_line() -> None:
    """The check of batches of two ends in the harness's loop, which is none of the author's files."""
    report = check_component(learners.NotFinite)
    raised = [(o.places[-1], o.problems[-1]) for o in report.with_status("failed") if "raised" in o.problems[-1]]
    assert any("DivergedError" in problem for _, problem in raised)
    assert all(place.startswith("planted_learners.py:") for place, _ in raised), raised


def test_a_class_whose_source_cannot_be_read_has_no_place() -> None:
    made = type("Made", (Component,), {"name": "made"})
    assert place_of_problem(made, "'rate' does nothing", ("loss",)) == ""
