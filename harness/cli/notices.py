"""Notices on the error stream: code of a suite before it runs, plugins that were not loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UserError
from harness.safe_io import visible

if TYPE_CHECKING:
    from harness.engine.cluster.profile import Profile
    from harness.registry.catalog import Catalog
    from harness.run.suite_code import SuiteCode
    from harness.suite.spec import Suite


def tell(code: SuiteCode) -> None:
    """Print a notice of code of a suite; for commands that say what a suite would do."""
    print(visible(f"code of this suite: {code}"), file=sys.stderr, flush=True)


def tell_strange(code: SuiteCode) -> None:
    """Print a notice of code that has not run before and is no file below the current folder."""
    if not code.known and not (code.digest and Path(code.place).is_relative_to(Path.cwd())):
        tell(code)


def tell_broken(catalog: Catalog) -> None:
    """Print the plugins that could not be loaded, with the reasons."""
    for broken in catalog.broken:
        print(visible(f"warning: plugin {broken.plugin} was not loaded: {broken.reason}"), file=sys.stderr)


def tell_withheld(catalog: Catalog) -> None:
    """Print the plugins that ``--no-plugins`` leaves out."""
    for name in catalog.withheld:
        print(visible(f"not loaded, as --no-plugins asks: {name}"), file=sys.stderr)


def cluster_of(suite: Suite) -> Profile | None:
    """Return the suite's own cluster.

    Raises:
        UserError: ``--no-plugins`` forbids it, as its options say what is run on which machines.
    """
    from harness.registry.discovery import plugins_off

    if suite.cluster is not None and plugins_off():
        raise UserError("the suite's own 'cluster' is not used, as --no-plugins asks; name one with --cluster")
    return suite.cluster


def as_json(plugins: Sequence[Path]) -> list[dict[str, str]]:
    """Return the plugin files of a suite for JSON output."""
    from harness.run.suite_code import plugin_code

    return [{"file": code.place, "sha256": code.digest} for code in plugin_code(plugins)]
