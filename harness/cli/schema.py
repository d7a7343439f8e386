"""``bench schema``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import options
from harness.cli.output import chosen_format, emit


def schema(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
    built_in: Annotated[bool, typer.Option("--built-in", help="Only the components that come with bench.")] = False,
    plugin: options.Plugins = None,
    strict: options.Strict = False,
) -> None:
    """Print a JSON Schema of suites with every component that is registered, for completion in an editor."""
    from harness.registry.catalog import Catalog
    from harness.registry.discovery import BUILT_IN
    from harness.registry.index import load_catalog
    from harness.results.rows import dumps
    from harness.suite import json_schema

    chosen_format("json", output)
    catalog = load_catalog(plugin or (), strict=strict)
    known = Catalog(entry for entry in catalog if entry.plugin == BUILT_IN) if built_in else catalog
    emit(dumps(json_schema(known)), output)
