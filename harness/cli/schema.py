"""``bench schema``."""

from __future__ import annotations

from harness.cli import options
from harness.cli.main import app


@app.command()
def schema(plugin: options.Plugins = None, strict: options.Strict = False) -> None:
    """Print a JSON Schema of suites with every component that is registered, for completion in an editor."""
    from harness.index import load_catalog
    from harness.results import dumps
    from harness.suite import json_schema

    print(dumps(json_schema(load_catalog(plugin or (), strict=strict))), end="")
