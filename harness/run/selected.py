"""What a run selected as suites of their own, with nothing left to tune. No torch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.results.rows import RunResults
from harness.results.selection import ScoreTable, choose
from harness.safe_io import MOST_SUITE, file_name, parse_yaml, read_text, visible

HEADER = """\
# The configurations that run {run} selected on {dataset}: {how}.
# Made from the run's own suite, with every setting in it; nothing is tuned here.
"""


def selected_suites(results: RunResults, resolved: Mapping[str, Any]) -> dict[str, str]:
    """Dataset label -> YAML text of a suite with each method as it was selected there.

    Methods whose search is unfinished or has no eligible configuration are left out, and the text says so.

    Args:
        results: the run's results.
        resolved: its resolved suite, as plain data.
    """
    import yaml

    scores = ScoreTable(results)
    found = {}
    for dataset in results.datasets:
        methods: dict[str, Any] = {}
        lacking, rules = [], set()
        for entry in (entry for entry in results.entries if entry.dataset == dataset.label):
            choice = choose(scores, entry, next(iter(dataset.test_splits), ""))
            if choice.config_id is None or choice.provisional:
                lacking.append(entry.method)
                continue
            rules.add(entry.select.config)
            values = entry.configurations[choice.config_id]
            methods[entry.method] = fixed(resolved["methods"][entry.method], values)
        suite = {**resolved, "name": file_name(f"{resolved['name']}-selected-{dataset.label}"), "methods": methods}
        suite["datasets"] = {dataset.label: resolved["datasets"][dataset.label]}
        reference = suite.get("report", {}).get("reference")
        if reference not in methods:
            suite["report"] = {k: v for k, v in suite.get("report", {}).items() if k != "reference"}
        kept = {name: value for name, value in suite.items() if name not in ("budget", "analyses") and value != {}}
        text = HEADER.format(run=results.run, dataset=visible(dataset.label), how=", ".join(sorted(rules)) or "none")
        if lacking:
            text += f"# Left out, as their search has not finished or has no result: {', '.join(lacking)}.\n"
        if methods:
            found[dataset.label] = text + yaml.safe_dump(kept, sort_keys=False, allow_unicode=True)
    return found


def fixed(method: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A method's table with tuned values in their places and without ``tune`` (and ``pool`` left as it is)."""
    done: dict[str, Any] = copy.deepcopy({name: value for name, value in method.items() if name != "tune"})
    for path, value in values.items():
        head, _, name = path.partition(".")
        part = done.setdefault(head, {})
        backbone = part.get("backbone") if head == "model" else None
        target = backbone if isinstance(backbone, dict) and name in backbone else part
        target[name] = value
    return done


def resolved_suite(folder: Path) -> dict[str, Any]:
    """The resolved suite in a run folder.

    Raises:
        UserError: it is not there or cannot be read.
    """
    path = folder / "suite.yaml"
    try:
        data = parse_yaml(read_text(path, MOST_SUITE))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: the run's suite cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise UserError(f"{path}: the run's suite is not a table")
    return data
