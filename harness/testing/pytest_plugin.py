"""The kit under pytest: :func:`conformance`, and as a plugin ``--bench-check NAME``. Imports nothing heavy at start."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.component import Component
    from harness.testing.report import CheckFunction
    from harness.testing.rig import Rig

OPTION = "--bench-check"
Case = tuple[str, Callable[[], None]]
"""Title, ``kind/name-check``, and the function that runs the check."""


def conformance(*what: str | Path | type[Component], data_dir: Path | None = None) -> Callable[..., None]:
    """Return a pytest test with a case for each check: ``test_mine = conformance("my_plugin.py")``.

    Args:
        what: component classes, ``NAME``, ``KIND/NAME`` or paths of plugin files.
        data_dir: the folder of data files, for datasets that read some.

    Raises:
        UserError: a name or file is not there.
    """
    from harness.registry.discovery import load_one
    from harness.registry.index import find_components

    classes: list[type[Component]] = []
    for item in what:
        classes += [item] if isinstance(item, type) else [load_one(entry) for entry in find_components([str(item)])]
    cases = [pytest.param(run, id=title) for cls in classes for title, run in _cases(cls, data_dir)]

    @pytest.mark.parametrize("case", cases)
    def test(case: Callable[[], None]) -> None:
        case()

    return test


def _cases(cls: type[Component], data_dir: Path | None = None) -> list[Case]:
    """Return the cases of a component; they share its rig."""
    from harness.testing.checks import checks_of, rig_of

    rig = rig_of(cls, data_dir)
    return [(f"{cls.kind}/{cls.name}-{check.__name__}", partial(_run, check, rig)) for check in checks_of(cls.kind)]


def _run(check: CheckFunction, rig: Rig[Any, Any]) -> None:
    """Run a check; skip or fail the pytest test accordingly."""
    from harness.testing.checks import run_check

    outcome = run_check(check, rig)
    if outcome.status == "skipped":
        pytest.skip(outcome.text())
    if outcome.status == "failed":
        pytest.fail(f"{outcome.about}\n{outcome.text()}", pytrace=False)


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
    alone = config.getoption(OPTION) and config.args_source is not pytest.Config.ArgsSource.ARGS
    return True if alone else None


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add an item for each check of each component."""
    if names := config.getoption(OPTION):
        items += _items(session, names)


def _items(session: pytest.Session, names: list[str]) -> Iterator[CheckItem]:
    import torch

    from harness.errors import UserError
    from harness.registry.discovery import load_one
    from harness.registry.index import find_components

    torch.set_num_threads(1)
    try:
        for cls in [load_one(entry) for entry in find_components([] if "all" in names else names)]:
            for title, run in _cases(cls):
                item: CheckItem = CheckItem.from_parent(session, name=title, nodeid=f"bench-check::{title}")
                item.component, item.check = cls, run
                yield item
    except UserError as error:
        raise pytest.UsageError(str(error)) from None


class CheckItem(pytest.Item):
    """One check of one component, placed at the component's class."""

    component: type[Component]
    check: Callable[[], None]

    def runtest(self) -> None:
        """Run the check."""
        self.check()

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the component's place."""
        return Path(inspect.getfile(self.component)), inspect.getsourcelines(self.component)[1] - 1, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any) -> Any:
        """Return the problems without pytest's own traceback."""
        return str(excinfo.value)
