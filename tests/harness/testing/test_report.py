"""The kit's texts: the contract of each check, the problems, and one traceback with the author's own line."""

from __future__ import annotations

import planted_learners as learners
import pytest

from harness.component import KINDS
from harness.testing import check_component
from harness.testing.checks import about, checks_of


class RaisesInBuild(learners.Sound):
    """Raises wherever it is used."""

    name = "raises-in-build"

    def build(self) -> None:
        raise ValueError("no")


@pytest.mark.parametrize("kind", KINDS)
def test_each_check_states_its_contract(kind: str) -> None:
    names = [check.__name__ for check in checks_of(kind)]
    assert len(set(names)) == len(names) > 0
    for check in checks_of(kind):
        assert about(check).endswith("."), check.__name__


def test_an_exception_is_one_traceback_from_the_authors_line_on() -> None:
    first, *others = check_component(learners.Exits).with_status("failed")
    assert first.problems == ("raised SystemExit: 7",)
    assert "planted_learners.py" in first.traceback[0]
    assert "raise SystemExit(7)" in first.traceback[1]
    assert not others, "the other checks are skipped"


def test_what_fails_in_every_check_is_told_once() -> None:
    text = check_component(RaisesInBuild).text()
    title, where, problem, file, line = text.splitlines()
    assert title.startswith("FAILED  baseline/raises-in-build  (15 checks, ")
    assert "skipped" not in title
    assert where == "  fails in every check:"
    assert problem.strip() == "raised ValueError: no"
    assert "test_report.py" in file
    assert line.strip() == 'raise ValueError("no")'


def test_an_exception_of_the_harness_names_the_line_of_the_harness() -> None:
    report = check_component(learners.NotFinite)
    raised = [outcome for outcome in report.with_status("failed") if "DivergedError" in outcome.problems[-1]]
    assert raised
    assert all("loop.py" in "".join(outcome.traceback) for outcome in raised)
    assert not any("harness/testing/" in line for outcome in raised for line in outcome.traceback)
