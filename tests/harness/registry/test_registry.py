"""Finding and loading plugins: built-in modules, installed distributions, single files; broken ones are told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from plugin_kit import install, write_plugin

from harness.errors import ChangedError, UserError
from harness.registry import discovery as registry
from harness.registry.catalog import Entry
from harness.registry.discovery import (
    all_sources,
    built_in_sources,
    distribution_sources,
    file_source,
    load_one,
    load_source,
    refuse_duplicates,
)
from harness.registry.importing import PluginError, reader
from harness.registry.index_build import entry
from harness.registry.planned_code import KeptCode


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


def reason(source: registry.Source) -> str:
    with pytest.raises(PluginError) as caught:
        load_source(source)
    return str(caught.value)


def written(tmp_path: Path, text: str) -> registry.Source:
    path = tmp_path / "mine.py"
    path.write_text(text)
    return file_source(path)


def test_every_file_below_a_kind_is_a_built_in_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/x.py", "a/_helper.py", "a/sub/y.py", "a/_private/z.py", "a/__init__.py", "top.py", "a/notes.txt"):
        (tmp_path / "plugins" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "plugins" / name).touch()
    monkeypatch.setattr(registry, "PLUGINS", tmp_path / "plugins")
    found = built_in_sources()
    assert [source.module for source in found] == ["plugins.a.sub.y", "plugins.a.x"]
    assert all(source.plugin == "built-in" and source.file.is_file() for source in found)


def test_a_single_file_is_loaded(tmp_path: Path) -> None:
    source = file_source(write_plugin(tmp_path / "mine.py", "mine"))
    assert source.single
    assert source.plugin == str(tmp_path / "mine.py")
    (component,) = load_source(source)
    assert (component.kind, component.name) == ("dataset", "mine")


def test_the_module_name_of_a_file_is_the_same_in_every_process(tmp_path: Path) -> None:
    path = write_plugin(tmp_path / "mine.py", "mine")
    code = "import sys; from pathlib import Path; from harness.registry.discovery import *\n"
    code += "print(file_source(Path(sys.argv[1])).module)"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == file_source(path).module


@pytest.mark.parametrize("line", ["from .helper import VALUE", "from . import helper"])
def test_a_file_imports_its_neighbours(tmp_path: Path, line: str) -> None:
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    assert load_source(file_source(write_plugin(tmp_path / "mine.py", "mine", imports=line)))


@pytest.mark.parametrize("line", ["from .parts.deep.one import A", "from .parts.deep import one"])
def test_helpers_in_folders_without_init_are_a_plugin_s_own_code(tmp_path: Path, line: str) -> None:
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    (tmp_path / "parts" / "deep" / "one.py").write_text("from . import two\nA = 1\n")
    (tmp_path / "parts" / "deep" / "two.py").write_text("B = 1\n")
    source = file_source(write_plugin(tmp_path / "mine.py", "mine", imports=line))
    before = source.code()
    assert set(before.hashes) == {"mine.py", "parts/deep/one.py", "parts/deep/two.py"}
    load_source(source)
    (tmp_path / "parts" / "deep" / "two.py").write_text("B = 2\n")
    assert source.code().digest != before.digest


def test_a_changed_plugin_is_loaded_anew_with_what_it_imports(tmp_path: Path) -> None:
    """Also where it is imported within a function, and where only such a file has changed."""
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    path = write_plugin(tmp_path / "mine.py", "mine", imports="from . import helper")
    lazy = "\n    def late(self):\n        from .late import LATE\n        return LATE\n"
    path.write_text(path.read_text().replace("\n\n@hookimpl", lazy + "\n\n@hookimpl"))
    source = file_source(path)
    for value in (1, 2, 3):
        (tmp_path / "helper.py").write_text(f"VALUE = {min(value, 2)}\n")
        (tmp_path / "late.py").write_text(f"LATE = {value}\n")
        (component,) = load_source(source)
        (tmp_path / "late.py").write_text("LATE = 'edited after it was read'\n")
        seen = sys.modules[component.__module__].helper.VALUE
        assert seen == min(value, 2)
        assert component().late() == value


def test_a_neighbour_that_is_imported_absolutely_is_what_was_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    helper = tmp_path / "absolute_parts" / "one.py"
    helper.parent.mkdir()
    path = write_plugin(tmp_path / "mine.py", "mine", imports="from absolute_parts.one import VALUE")
    source = file_source(path)
    for value in (1, 2):
        helper.write_text(f"VALUE = {value}\n")
        (component,) = load_source(source)
        assert value == sys.modules[component.__module__].VALUE
    row = replace(entry(source, component), files=source.code().hashes)
    kept = KeptCode.of([path], [row])
    helper.write_text("VALUE = 3\n")
    load_source(source)
    assert sys.modules[load_one(row, kept).__module__].VALUE == 2


def test_load_one_takes_what_the_entry_was_made_of_or_stops(tmp_path: Path) -> None:
    path = write_plugin(tmp_path / "mine.py", "mine", size=3)
    source = file_source(path)
    (component,) = load_source(source)
    row = replace(entry(source, component), files=source.code().hashes)
    kept = KeptCode.of([path], [row])
    write_plugin(path, "mine", size=4)
    (edited,) = load_source(source)
    assert edited().size == 4
    with pytest.raises(ChangedError, match=f"changed since it was planned: {path}$"):
        load_one(row)
    assert load_one(row, kept)().size == 3
    path.unlink()
    assert load_one(row, kept)().size == 3
    damaged = KeptCode(kept.plugins, dict.fromkeys(kept.texts, "size = 5"))
    reader().contents.clear()
    with pytest.raises(ChangedError):
        load_one(row, damaged)


def test_neighbours_of_one_name_in_two_folders_are_not_confused(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_plugin(tmp_path / folder / "mine.py", folder, imports="from .helper import VALUE")
        (tmp_path / folder / "helper.py").write_text(f"VALUE = {folder!r}\n")
    for folder in ("one", "two"):
        (component,) = load_source(file_source(tmp_path / folder / "mine.py"))
        assert folder == sys.modules[component.__module__].VALUE
    other = write_plugin(tmp_path / "one" / "other.py", "one", imports="from helper import VALUE")
    assert "write `from .helper import" in reason(file_source(other))


def test_load_one_imports_the_class_of_an_entry(tmp_path: Path) -> None:
    source = file_source(write_plugin(tmp_path / "mine.py", "mine"))
    (component,) = load_source(source)
    row = entry(source, component)
    assert load_one(row) is component
    code = "import json, sys; from harness.registry.catalog import *; from harness.registry.discovery import load_one; "
    code += "print(load_one(Entry.from_json(json.loads(sys.argv[1]))).name, 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(row.to_json())], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "mine False"


def test_load_one_finds_a_class_in_a_neighbour(tmp_path: Path) -> None:
    write_plugin(tmp_path / "helper.py", "mine")
    source = written(
        tmp_path,
        "from harness import hookimpl\nfrom .helper import Made\n"
        "@hookimpl\ndef bench_register(register):\n    register(Made)\n",
    )
    (component,) = load_source(source)
    row = entry(source, component)
    assert row.module.endswith(".helper")
    del sys.modules[row.module]
    assert load_one(row).name == "mine"


def test_load_one_tells_what_is_gone(tmp_path: Path) -> None:
    path = write_plugin(tmp_path / "mine.py", "mine")
    source = file_source(path)
    row = Entry("dataset", "gone", source.module, "Gone", str(path), source.plugin, "")
    with pytest.raises(UserError, match=r"dataset 'gone' of .*mine\.py cannot be loaded.*no such class"):
        load_one(row)


MARK = "@hookimpl\n"
HEAD = "from harness import Dataset, hookimpl\nclass A(Dataset):\n    name = 'a'\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import no_such_package_1\n", r"no_such_package_1.*line 1.*install the package"),
        ("from harness import hookimp\n", "hookimp"),
        ("1 / 0\n", r"ZeroDivisionError.*mine\.py, line 1"),
        ("def f(:\n", r"SyntaxError.*mine\.py, line 1"),
        ("import sys\nsys.exit(3)\n", r"importing it raised SystemExit: 3"),
        ("X = 1\n", r"registers nothing.*bench_register\(register\).*underscore"),
        (
            HEAD + "def bench_register(register):\n    register(A)\n",
            r"line \d+: its function 'bench_register' is not decorated: put @hookimpl",
        ),
        (
            HEAD + MARK + "def bench_registr(register):\n    register(A)\n",
            r"line \d+: there is no hook 'bench_registr'.*bench_register",
        ),
        (HEAD + MARK + "def register_all(register):\n    register(A)\n", r"no hook 'register_all'.*bench_register"),
        (
            HEAD + "def bench_method(register):\n    register(A)\n",
            r"no hook 'bench_method'.*bench_register\(register\)",
        ),
        (HEAD + MARK + "def bench_register(add):\n    add(A)\n", r"registering raised PluginValidationError.*'add'"),
        (HEAD + MARK + "def bench_register(register):\n    pass\n", "registers nothing"),
        (HEAD + MARK + "def bench_register(register):\n    register(A())\n", "not a component class"),
        (HEAD + MARK + "def bench_register(register):\n    register(int)\n", "not a component class"),
        (
            HEAD + MARK + "def bench_register(register):\n    register(A)\n    register(A)\n",
            r"registers the \w+ 'a' twice",
        ),
        (HEAD + MARK + "def bench_register(register):\n    register(B)\n", r"NameError.*mine\.py, line 6"),
        (
            HEAD + MARK + "def bench_register(register):\n    raise SystemExit('no')\n",
            "registering raised SystemExit: no",
        ),
        (
            HEAD + MARK + "def bench_register(register):\n    class B(A): pass\n    register(B)\n",
            "top of its module",
        ),
        (HEAD.replace("'a'", "''") + MARK + "def bench_register(register):\n    register(A)\n", "A has no name"),
        (
            HEAD.replace("'a'", "'a b'") + MARK + "def bench_register(register):\n    register(A)\n",
            "letters, digits",
        ),
        (HEAD.replace("'a'", "'a'\n    x = __import__('harness').hparam(1)") + "\n", "type annotation"),
    ],
)
def test_a_broken_plugin_is_told_to_its_author(tmp_path: Path, text: str, expected: str) -> None:
    told = reason(written(tmp_path, text))
    assert re.search(expected, told, re.DOTALL), told


def test_a_component_of_no_kind_is_refused(tmp_path: Path) -> None:
    text = (
        "from harness import hookimpl\nfrom harness.component import Component\n"
        "class A(Component):\n    name = 'a'\n@hookimpl\ndef bench_register(register):\n    register(A)\n"
    )
    assert "derives from no kind's base class" in reason(written(tmp_path, text))


@pytest.mark.parametrize(("name", "text"), [("gone.py", "not found"), ("a.b.py", "one dot"), ("x.txt", "one dot")])
def test_a_file_that_cannot_be_a_plugin_is_refused(tmp_path: Path, name: str, text: str) -> None:
    if name != "gone.py":
        (tmp_path / name).touch()
    with pytest.raises(UserError, match=text):
        file_source(tmp_path / name)


def test_installed_distributions_are_found_without_importing_them(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, "my-method", "my_method.plugin")
    (site / "my_method").mkdir()
    (site / "my_method" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    write_plugin(site / "my_method" / "plugin.py", "mine")
    install(site, "single-module", "single_module")
    write_plugin(site / "single_module.py", "single")
    install(site, "spaces-only", "name_space.plugin")
    write_plugin(site / "name_space" / "plugin.py", "spaced")
    install(site, "left-over", "deleted_package")
    install(site, "an-object", "single_module:bench_register")
    found, missing = distribution_sources()
    assert {(source.plugin, source.module) for source in found} == {
        ("my-method", "my_method.plugin"),
        ("single-module", "single_module"),
        ("spaces-only", "name_space.plugin"),
    }
    assert "'deleted_package', which is no module" in missing["left-over"]
    assert "'single_module:bench_register', which is no module" in missing["an-object"]
    by_name = {source.plugin: source for source in found}
    assert "imported" in reason(by_name["my-method"])
    assert load_source(by_name["single-module"])[0].name == "single"
    assert load_source(by_name["spaces-only"])[0].name == "spaced"


def test_the_core_and_torch_are_not_a_distribution_s_own_code(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, "my-method", "my_method")
    write_plugin(site / "my_method.py", "mine", imports="import neighbour")
    (site / "neighbour.py").touch()
    ((source, *_), _) = distribution_sources()
    assert set(source.roots()) == {"plugins", "my_method"}


def test_a_file_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_plugin(tmp_path / "mine.py", "mine")
    monkeypatch.chdir(tmp_path)
    sources, _ = all_sources([path, Path("mine.py"), tmp_path / "." / "mine.py"])
    assert [source.file for source in sources if source.single] == [path]
    monkeypatch.undo()
    (built_in,) = [source for source in built_in_sources() if source.module == "plugins.baselines.erm"]
    sources, _ = all_sources([built_in.file])
    assert [source.plugin for source in sources if source.file == built_in.file] == ["built-in"]


def test_two_components_of_one_name_are_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    rows = [Entry("dataset", "same", "m", "A", str(path), str(path), "") for path in (one, two)]
    with pytest.raises(UserError, match=r"dataset 'same'.*one\.py.*two\.py"):
        refuse_duplicates(rows)
    with pytest.raises(UserError) as caught:
        refuse_duplicates([*rows, Entry("dataset", "same", "m", "A", "f.py", "dist 1", "")])
    assert [str(caught.value).count(str(path)) for path in (one, two)] == [1, 1]
    with pytest.raises(UserError, match=r"one\.py and dist 1 \(f\.py\); rename"):
        refuse_duplicates([rows[0], Entry("dataset", "same", "m", "A", "f.py", "dist 1", "")])
    refuse_duplicates([rows[0], Entry("encoder", "same", "m", "A", "f", "p", "")])


def test_an_edit_within_the_same_second_is_seen(tmp_path: Path) -> None:
    """Bytecode that Python takes for current must not hide it: old code would work under the new code's key."""
    path = tmp_path / "mine.py"
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


def test_finding_plugins_imports_nothing_heavy() -> None:
    code = (
        "import sys; from harness.registry.discovery import all_sources; all_sources()\n"
        "print([name for name in ('torch', 'numpy', 'pluggy', 'plugins') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
