"""The kit's checks as cases of a pytest test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.component import Component
from harness.registry.discovery import load_one
from harness.testing.report import CheckFunction, Outcome
from harness.testing.run import checks_of, run_check, subject_of
from harness.testing.select import find
from harness.testing.source_lines import place_of_class


def conformance(*what: str | Path | type[Component], data_dir: Path | None = None) -> Callable[..., None]:
    """A pytest test with a case for each check of each component: ``test_mine = conformance("my_plugin.py")``.

    Args:
        what: component classes, ``NAME``, ``KIND/NAME`` or paths of plugin files.
        data_dir: where data files are, for datasets that read some.

    Raises:
        UserError: a name or file is not there.
    """
    cases = [pytest.param(case, id=case.title) for cls in _classes(what) for case in Case.all_of(cls, data_dir)]

    @pytest.mark.parametrize("case", cases)
    def test(case: Case) -> None:
        case.run()

    return test


def _classes(what: tuple[str | Path | type[Component], ...]) -> Iterator[type[Component]]:
    for item in what:
        if isinstance(item, type):
            yield item
        else:
            yield from (load_one(entry) for entry in find([str(item)]))


class Case:
    """One check of one component.

    Attributes:
        title: ``kind/name-check``.
    """

    def __init__(self, cls: type[Component], check: CheckFunction, shared: dict[str, Any], data_dir: Path | None):
        self.title = f"{cls.kind}/{cls.name}-{check.__name__}"
        self._cls, self._check, self._shared, self._data_dir = cls, check, shared, data_dir

    @classmethod
    def all_of(cls, component: type[Component], data_dir: Path | None = None) -> list[Case]:
        """The cases of a component; they share what was trained."""
        shared: dict[str, Any] = {}
        return [cls(component, check, shared, data_dir) for check in checks_of(component.kind)]

    @property
    def line(self) -> int | None:
        """The line on which the component's class begins, from 0; None where it cannot be read."""
        number = place_of_class(self._cls).rpartition(":")[2]
        return int(number) - 1 if number else None

    def outcome(self) -> Outcome:
        """Run the check."""
        if "subject" not in self._shared:
            self._shared["subject"] = subject_of(self._cls, self._data_dir)
        return run_check(self._check, self._shared["subject"])

    def run(self) -> None:
        """Run the check; skip or fail the pytest test accordingly."""
        outcome = self.outcome()
        if outcome.status == "skipped":
            pytest.skip("; ".join(outcome.problems))
        if outcome.status == "failed":
            pytest.fail("\n".join([outcome.about, *(f"- {text}" for text in outcome.told)]), pytrace=False)
