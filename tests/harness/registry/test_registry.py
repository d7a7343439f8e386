"""Finding and loading plugins: built-in modules, installed distributions, single files; broken ones are told."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from plugin_kit import write_plugin

from harness.registry import discovery as registry
from harness.registry.discovery import (
    built_in_sources,
    file_source,
    load_source,
)
from harness.registry.importing import PluginError, reader


@pytest.fixture(autouse=True)
def clean_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Undo what a test imports, and leave the built-in plugins out: they are slow to import."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if finder is not reader()])
    before = set(sys.modules)
    monkeypatch.setattr(registry, "built_in_sources", list)
    yield  # type: ignore[misc]
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file is None or str(tmp_path) in file:
            del sys.modules[name]


def reason(path: Path) -> str:
    with pytest.raises(PluginError) as caught:
        load_source(file_source(path))
    return str(caught.value)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(text)
    return path


def test_every_file_below_a_kind_is_a_built_in_plugin(tmp_path: Path) -> None:
    for name in ("a/x.py", "a/_helper.py", "a/sub/y.py", "a/_private/z.py", "a/__init__.py", "top.py", "a/notes.txt"):
        (tmp_path / "plugins" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "plugins" / name).touch()
    found = built_in_sources(tmp_path / "plugins")
    assert [source.module for source in found] == ["plugins.a.sub.y", "plugins.a.x"]
    assert all(source.plugin == "built-in" and source.file.is_file() for source in found)


def test_our_own_plugins_are_found() -> None:
    assert "plugins.baselines.erm" in {source.module for source in built_in_sources()}


def test_a_single_file_is_loaded(tmp_path: Path) -> None:
    source = file_source(write_plugin(tmp_path / "mine.py", "mine"))
    assert source.single
    assert source.plugin == str(tmp_path / "mine.py")
    (component,) = load_source(source)
    assert (component.kind, component.name) == ("dataset", "mine")


def test_the_module_name_of_a_file_is_the_same_in_every_process(tmp_path: Path) -> None:
    path = write_plugin(tmp_path / "mine.py", "mine")
    code = "import sys; from pathlib import Path; from harness.registry.discovery import *\n"
    code += "(component,) = load_source(file_source(Path(sys.argv[1]))); print(component().size)"
    command = [sys.executable, "-c", code, str(path)]
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
    moment = time.time() + 600  # so that both files are young however long a process takes
    for size in (3, 4):
        write_plugin(path, "mine", size=size)
        os.utime(path, (moment, moment))
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        assert done.stdout == f"{size}\n"
    assert not list((tmp_path / "bytecode").rglob("mine.*.pyc")), "no bytecode of a plugin is left for anybody"


def test_a_foreign_package_called_plugins_is_told(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "__init__.py").touch()
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from harness.registry.discovery import *
source = [source for source in built_in_sources() if source.module == "plugins.baselines.erm"][0]
try:
    load_source(source)
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert f"({tmp_path / 'plugins'}) hides ours" in done.stdout


def test_finding_plugins_imports_nothing_heavy() -> None:
    code = (
        "import sys; from harness.registry.discovery import all_sources; all_sources()\n"
        "print([name for name in ('torch', 'numpy', 'pluggy', 'plugins') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
