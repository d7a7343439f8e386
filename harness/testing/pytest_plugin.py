"""The pytest plugin: ``pytest --bench-check NAME`` runs the conformance kit. Imports nothing heavy at start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.testing.cases import Case

OPTION = "--bench-check"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("bench").addoption(
        OPTION,
        action="append",
        default=[],
        metavar="NAME|KIND/NAME|PATH|all",
        help="check components of the benchmark; repeatable. Without paths of tests, nothing else is run.",
    )


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Collect no tests where only components are asked for."""
    return True if _alone(config) else None


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add an item for each check of each component."""
    names = config.getoption(OPTION)
    if names:
        items += [CheckItem.of(session, case, file) for case, file in _cases(names)]


def _alone(config: pytest.Config) -> bool:
    return bool(config.getoption(OPTION)) and config.args_source is not pytest.Config.ArgsSource.ARGS


def _cases(names: list[str]) -> list[tuple[Case, Path]]:
    import torch

    from harness.errors import UserError
    from harness.registry.discovery import load_one
    from harness.testing.cases import Case
    from harness.testing.select import find

    torch.set_num_threads(1)
    try:
        entries = find([] if "all" in names else names)
        return [(case, Path(entry.file)) for entry in entries for case in Case.all_of(load_one(entry))]
    except UserError as error:
        raise pytest.UsageError(str(error)) from None


class CheckItem(pytest.Item):
    """One check of one component."""

    case: Case
    file: Path

    @classmethod
    def of(cls, session: pytest.Session, case: Case, file: Path) -> CheckItem:
        """The item of a case, placed at the component's file."""
        item: CheckItem = cls.from_parent(session, name=case.title, nodeid=f"bench-check::{case.title}")
        item.case, item.file = case, file
        return item

    def runtest(self) -> None:
        """Run the check."""
        self.case.run()

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the component is."""
        return self.file, self.case.line, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any) -> Any:
        """The problems without a traceback."""
        return str(excinfo.value)
