"""``bench doctor``."""

from __future__ import annotations

from typing import Any

from harness.cli import options


def doctor(
    folders: options.Folders,
    json: options.Json = False,
) -> None:
    """Show versions, devices, plugins, the data found, the store and the state of PyGCL."""
    from harness.results.rows import dumps

    facts = examine(folders)
    if json:
        print(dumps(facts), end="")
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for key, item in value.items():
                print(f"  {key}: {item}")
        elif isinstance(value, list):
            print(f"{name}: {', '.join(map(str, value)) or 'none'}")
        else:
            print(f"{name}: {value}")


def examine(folders: options.Folders) -> dict[str, Any]:
    """Everything ``doctor`` shows, as JSON."""
    from harness.engine.provenance import provenance
    from harness.errors import BenchError
    from harness.nn.pygcl import pygcl_state
    from harness.registry.index import load_catalog
    from harness.store import Store, data_root, index_root

    made = provenance()
    facts: dict[str, Any] = {
        "versions": made["versions"],
        "machine": {name: made[name] for name in ("platform", "cpu", "cores")},
        "devices": _devices(),
        "PyGCL": pygcl_state(),
    }
    try:
        catalog = load_catalog(folders.plugin or ())
        facts["components"] = len(list(catalog))
        facts["broken plugins"] = [f"{item.plugin}: {item.reason}" for item in catalog.broken]
    except BenchError as error:
        facts["broken plugins"] = [str(error)]
    try:
        opened = Store(folders.store)
        opened.require_writable()
        facts["store"] = str(opened.root)
    except BenchError as error:
        facts["store"] = str(error)
    facts["index"] = str(index_root())
    folder = folders.data_dir or data_root()
    facts["data folder"] = str(folder)
    facts["data found"] = sorted(p.name for p in folder.iterdir() if p.name[0] != ".") if folder.is_dir() else []
    return facts


def _devices() -> list[str]:
    from harness.engine.devices import survey_devices

    try:
        return survey_devices()
    except (ImportError, OSError) as error:
        return [f"torch cannot be imported: {error}"]
    except RuntimeError as error:
        return [f"torch cannot look at its devices: {error}"]
