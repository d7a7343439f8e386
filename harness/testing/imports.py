"""What importing and using a component imports: heavy and optional packages belong where they are used."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

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
    """Those of the packages that are loaded once a component's module is imported, in a fresh process.

    Raises:
        RuntimeError: the module cannot be imported there.
    """
    name = cls.__module__
    given = json.dumps([sys.path, name, inspect.getfile(cls), name.startswith(SINGLE), sorted(packages)])
    command = [sys.executable, "-c", _PROBE, given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"importing the module in a fresh process failed: {last}")
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def optional_packages(cls: type[Component]) -> list[str]:
    """Packages that the component's file imports, anywhere, and that are no part of the harness's own needs."""
    tree = ast.parse(Path(inspect.getfile(cls)).read_text(encoding="utf-8"))
    names = {name for node in ast.walk(tree) for name in _imported(node)}
    return sorted(names - _CORE - set(sys.stdlib_module_names))


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module.partition(".")[0]


class _Refusing(MetaPathFinder):
    """Finds none of the packages, and notes that they were looked for."""

    def __init__(self, packages: Sequence[str], asked: list[str]) -> None:
        self._packages, self._asked = packages, asked

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None, unless it is one of the packages.

        Raises:
            ModuleNotFoundError: it is.
        """
        del path, target
        package = fullname.partition(".")[0]
        if package in self._packages:
            self._asked.append(package)
            raise ModuleNotFoundError(f"No module named '{fullname}'", name=fullname)
        return None


@contextmanager
def without(packages: Sequence[str]) -> Iterator[list[str]]:
    """As if the packages were not installed; gives the list of those that were asked for meanwhile."""
    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in packages}
    asked: list[str] = []
    finder = _Refusing(packages, asked)
    for name in hidden:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        yield asked
    finally:
        sys.meta_path.remove(finder)
        sys.modules.update(hidden)
