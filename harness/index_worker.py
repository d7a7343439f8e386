"""The child process of the index: imports plugins one by one and prints a JSON line for each."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.catalog import Entry
from harness.component import Component
from harness.registry import PluginError, Source, load_source
from harness.source import component_digest

TRAITS = (
    "family",
    "needs",
    "oracle",
    "per_batch",
    "positional",
    "requires",
    "tasks",
    "upstream",
    "uses_validation_labels",
)


def describe(source: Source) -> dict[str, Any]:
    """The answer for one plugin: its entries, or the reason why there are none."""
    try:
        return {"entries": [entry(source, component).to_json() for component in load_source(source)]}
    except PluginError as error:
        return {"reason": str(error)}
    except Exception as error:
        return {"reason": f"describing it raised {type(error).__name__}: {error}"}


def entry(source: Source, component: type[Component]) -> Entry:
    """The catalog's row for one class."""
    file = Path(inspect.getfile(component)).resolve()
    return Entry(
        kind=component.kind,
        name=component.name,
        module=component.__module__,
        qualname=component.__qualname__,
        file=str(file),
        plugin=source.plugin,
        digest=component_digest(component.kind, file, source.base),
        hparams=component.hparams,
        doc=inspect.cleandoc(component.__doc__ or ""),
        traits={**{t: plain(getattr(component, t)) for t in TRAITS if hasattr(component, t)}, **_extra(component)},
    )


def _extra(component: type[Component]) -> dict[str, Any]:
    return {name: plain(value) for name, value in getattr(component, "traits", {}).items()}


def plain(value: Any) -> Any:
    """JSON for a class attribute, sets in order."""
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    return value


def main() -> None:
    """Read the sources from standard input and answer on standard output, which plugins cannot write to."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for item in json.load(sys.stdin):
        source = Source(item["plugin"], item["module"], Path(item["file"]), Path(item["base"]))
        answers.write(json.dumps(describe(source)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
