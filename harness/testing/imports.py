"""Packages that a component loads: heavy and optional ones belong where they are used."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from harness.component import Component
from harness.registry.importing import SINGLE

HEAVY = ("torch", "torch_geometric", "matplotlib", "sklearn", "scipy", "pandas", "rdkit")
"""Packages that no process shall load without using them."""
_CORE = {*HEAVY, "harness", "plugins", "numpy", "yaml", "psutil", "safetensors", "pluggy", "rich", "typer", "jinja2"}
_LIMIT = 120.0
_PROBE = """\
import json, sys
path, name, file, single, heavy = json.loads(sys.argv[1])
sys.path[:] = path
from pathlib import Path
from harness.registry.importing import import_plugin
from harness.registry.source_digest import Code
import_plugin(name, Code(Path(file), {}, {}), Path(file).parent if single else None)
print(json.dumps([package for package in heavy if package in sys.modules]))
"""


def loaded_at_import(cls: type[Component], packages: Collection[str]) -> list[str]:
    """Return those of the packages that importing a component's module in a fresh process loads.

    Raises:
        RuntimeError: the module cannot be imported there.
    """
    return list(_loaded(cls.__module__, inspect.getfile(cls), tuple(sorted(packages))))


@lru_cache(maxsize=64)
def _loaded(name: str, file: str, packages: tuple[str, ...]) -> list[str]:
    """Import a module in a fresh process; several components may share it."""
    given = json.dumps([sys.path, name, file, name.startswith(SINGLE), packages])
    command = [sys.executable, "-c", _PROBE, given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"importing the module in a fresh process failed: {last}")
    loaded: list[str] = json.loads(done.stdout.splitlines()[-1])
    return loaded


def optional_packages(cls: type[Component]) -> list[str]:
    """Return the packages that the component's file imports, anywhere, and that the harness does not need."""
    tree = ast.parse(Path(inspect.getfile(cls)).read_text(encoding="utf-8"))
    names = {name for node in ast.walk(tree) for name in _imported(node)}
    return sorted(names - _CORE - set(sys.stdlib_module_names))


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module.partition(".")[0]


@contextmanager
def without(packages: Collection[str]) -> Iterator[None]:
    """Let imports of the packages fail in the block, as if they were not installed."""
    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in packages}
    sys.modules.update(dict.fromkeys({*hidden, *packages}))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in packages:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)
