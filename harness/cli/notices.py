"""Notices on the error stream: code of a suite before it runs, plugins that were not loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.output import say

if TYPE_CHECKING:
    from harness.registry.catalog import Catalog
    from harness.run.suite_code import SuiteCode


def tell(code: SuiteCode) -> None:
    """Print a notice of code of a suite; for commands that say what a suite would do."""
    say(f"code of this suite: {code}")


def tell_strange(code: SuiteCode) -> None:
    """Print a notice of code that has not run before and is no file below the current folder."""
    if not code.known and not (code.digest and Path(code.place).is_relative_to(Path.cwd())):
        tell(code)


def tell_plugins(catalog: Catalog) -> None:
    """Print the plugins that could not be loaded, with the reasons, and those that ``--no-plugins`` leaves out."""
    for broken in catalog.broken:
        say(f"warning: plugin {broken.plugin} was not loaded: {broken.reason}")
    for name in catalog.withheld:
        say(f"not loaded, as --no-plugins asks: {name}")
