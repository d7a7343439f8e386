"""Open a suite: components, suite, data, plan and store, in the order in which faults should be found. No torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.plan import Plan, build_plan
from harness.plan.datasets import Declarations
from harness.registry.catalog import Catalog
from harness.registry.index import load_catalog
from harness.run.trials import TrialScores
from harness.store import Store
from harness.suite import Overrides, find_suite, load_suite, peek_plugins
from harness.suite.spec import Suite


@dataclass(frozen=True)
class Options:
    """Options of the command line beside the suite.

    Attributes:
        store: folder of the store, or None for the default.
        data_dir: folder of the user's data, or None.
        overrides: changes of the suite, visible in every output.
        plugins: further plugin files, which the opened suite names too.
        strict_plugins: a plugin that cannot be loaded is an error.
        tell: is told of each plugin file of the suite, of the code that its datasets name, before any of it runs, and
            of its cluster.
    """

    store: Path | None = None
    data_dir: Path | None = None
    overrides: Overrides = field(default_factory=Overrides)
    plugins: Sequence[Path] = ()
    strict_plugins: bool = False
    tell: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Session:
    """An opened suite; ``data_dir`` is the user's folder of data, or None.

    ``plan`` has also those trials of searches that follow from the scores in the store.
    """

    suite: Suite
    catalog: Catalog
    facts: Declarations
    plan: Plan
    store: Store
    data_dir: Path | None = None


def open_session(name: str, options: Options) -> Session:
    """Load a suite by path or name and plan it.

    Raises:
        UserError: anything that the user can mend; nothing has been run.
    """
    path, tell = find_suite(name), options.tell
    files = peek_plugins(path)
    for file in files:
        tell(f"plugin file: {file}")
    catalog = load_catalog(options.plugins, suite_files=files, strict=options.strict_plugins)
    store = Store(options.store)
    naming = lambda dataset, target: tell(f"named by dataset '{dataset}': {target}")  # noqa: E731
    facts = Declarations(catalog, options.data_dir, store, naming)
    suite = load_suite(path, catalog, facts.declare, overrides=options.overrides)
    if options.plugins:
        suite = _with_plugins(suite, options.plugins)
    plan = build_plan(suite, catalog, facts, TrialScores(suite, facts, store))
    if suite.cluster is not None:
        tell(f"for --engine dask alone: {suite.cluster.title}")
    return Session(suite, catalog, facts, plan, store, options.data_dir)


def _with_plugins(suite: Suite, files: Sequence[Path]) -> Suite:
    """Return a suite that names further plugin files, so that what a run keeps of it is complete."""
    known = {file.resolve() for file in suite.plugins}
    further = dict.fromkeys(file.absolute() for file in files if file.resolve() not in known)
    plugins = (*suite.plugins, *further)
    return replace(suite, plugins=plugins, resolved={**suite.resolved, "plugins": list(map(str, plugins))})
