"""Finding suites, plugin files, and what is imported on the way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from suite_kit import DATA, HEAD, Load, declare

from harness.errors import SuiteError, UserError
from harness.registry.catalog import BrokenPlugin, Catalog
from harness.suite import find_suite, installed_suites, load_suite, peek_plugins, suites_folder

ROOT = Path(__file__).resolve().parents[3]
Faults = Callable[..., list[str]]
ERM = "methods: {ERM: {baseline: erm}}\n"
SHIPPED = ("ablation", "molecules", "paper/ablation", "quick", "spmotif", "two-piece")


def test_installed_suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert set(SHIPPED) <= set(installed_suites())
    expected = suites_folder() / "ablation.yaml"
    for name in ("ablation", "ablation.yaml", "suites/ablation.yaml", "./suites/ablation.yaml", "suites/ablation"):
        assert find_suite(name) == expected
    assert find_suite("suites/paper/ablation.yaml") == suites_folder() / "paper/ablation.yaml"


def test_a_local_file_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites/ablation.yaml").write_text("bench: 1\n")
    assert find_suite("suites/ablation.yaml") == Path("suites/ablation.yaml")


def test_a_suite_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"ablatoin does not exist, .* \(did you mean 'ablation'\?\); there are: "):
        find_suite("ablatoin")
    (tmp_path / "mine.yaml").touch()
    with pytest.raises(UserError, match=rf"\(did you mean '{tmp_path}/mine\.yaml'\?\)"):
        find_suite(tmp_path / "mine.yml")
    with pytest.raises(UserError, match="is a folder"):
        find_suite(tmp_path)


def test_no_file_is_proposed_that_only_ends_alike_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ref.yaml").touch()
    (tmp_path / "dir.yaml").mkdir()
    for name in ("nothere.yaml", "dir.yaml"):
        with pytest.raises(UserError) as told:
            find_suite(name)
        assert "did you mean" not in str(told.value)


def test_a_pipe_is_no_suite(tmp_path: Path) -> None:
    """What ``bench run <(…)`` gives is empty when it is read again."""
    os.mkfifo(tmp_path / "fifo.yaml")
    with pytest.raises(UserError, match=r"fifo.yaml is not a regular file: a suite is read more than once"):
        find_suite(tmp_path / "fifo.yaml")


def test_peek_plugins(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "one.py").touch()
    (tmp_path / "x/two.py").touch()
    (tmp_path / "x/part.yaml").write_text("plugins: [two.py, ../one.py]\nmethods: 5\n")
    suite = tmp_path / "suite.yaml"
    suite.write_text("include: [x/part.yaml]\nplugins: one.py\nnonsense: [\n")
    with pytest.raises(SuiteError, match="not valid YAML"):
        peek_plugins(suite)
    suite.write_text("include: [x/part.yaml]\nplugins: one.py\nnonsense: 1\n")
    assert peek_plugins(suite) == (tmp_path / "x/two.py", tmp_path / "one.py")
    suite.write_text("plugins: [gone.py, x]\n")
    assert peek_plugins(suite) == ()


def test_a_suite_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"gone\.yaml: cannot read the file: No such file"):
        peek_plugins(tmp_path / "gone.yaml")


def test_nothing_heavy_is_imported() -> None:
    code = "import sys, harness.suite; print([m for m in ('torch', 'numpy', 'sklearn', 'plugins') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_that_a_broken_plugin_may_have_tells_of_it(load: Load, catalog: Catalog, tmp_path: Path) -> None:
    text = HEAD + DATA + "methods:\n  Mine: {baseline: mine}\nplugins: [mine.py]\n"
    with pytest.raises(SuiteError, match="; there are: "):
        load(text, files={"mine.py": ""})
    broken = Catalog(catalog, [BrokenPlugin("mine", str(tmp_path / "mine.py"), "SyntaxError in line 1")])
    with pytest.raises(SuiteError, match=r"there are: .*these plugins could not be loaded: mine"):
        load_suite(tmp_path / "suite.yaml", broken, declare)


def test_faults_of_fragments_name_their_file(faults: Faults) -> None:
    found = faults(HEAD + DATA + "include: [part.yaml]\n", files={"part.yaml": "methods:\n  A: {baseline: emr}\n"})
    assert len(found) == 1
    assert found[0].startswith("part.yaml:2:17: no baseline is called 'emr'")


def test_include_faults(faults: Faults) -> None:
    text = HEAD + DATA + ERM + "include: FILES\n"
    assert faults(text.replace("FILES", "[gone.yaml]"))[0].startswith("6:11: included file not found: ")
    cycle = faults(
        text.replace("FILES", "[a.yaml]"), files={"a.yaml": "include: b.yaml\n", "b.yaml": "include: [a.yaml]\n"}
    )
    assert cycle[0].startswith("b.yaml:1:11: include cycle: suite.yaml → a.yaml → b.yaml → a.yaml")
    assert "is not" not in faults(text.replace("FILES", "[5]"))[0]
    assert faults(text.replace("FILES", "[5]"))[0].startswith("6:11: 'include' takes a name, found 5")
    many = {f"f{n}.yaml": f"include: [f{n + 1}.yaml, f{n + 1}.yaml]\n" for n in range(20)} | {"f20.yaml": "name: x\n"}
    assert "more than 200 files are included" in faults(text.replace("FILES", "[f0.yaml]"), files=many)[0]
    large = {f"f{n}.yaml": f"name: x\n# {'x' * 600_000}\n" for n in range(3)}
    told = faults(text.replace("FILES", "[f0.yaml, f1.yaml, f2.yaml]"), files=large)
    assert told[0].startswith("6:29: the files before this one have more than 1,000,000 bytes together")


def test_plugin_faults(faults: Faults, load: Load, catalog: Catalog, tmp_path: Path) -> None:
    text = HEAD + DATA + ERM + "plugins: [mine.py]\n"
    assert faults(text)[0].startswith(f"6:11: plugin file not found: {tmp_path}/mine.py")
    told = faults(text.replace("mine.py", "my.own.py, suite.yaml"))
    why = "is no Python file with one dot in its name, such as method.py"
    assert told == [
        f"6:11: plugin file not found: {tmp_path}/my.own.py",
        f"6:22: plugin file {why}: {tmp_path}/suite.yaml",
    ]
    assert load(text, files={"mine.py": "x = 1\n"}).plugins == (tmp_path / "mine.py",)
    broken = Catalog(catalog, [BrokenPlugin("mine", str(tmp_path / "mine.py"), "SyntaxError in line 1")])
    with pytest.raises(SuiteError, match=r"6:11: the plugin .* could not be loaded: SyntaxError in line 1"):
        load_suite(tmp_path / "suite.yaml", broken, declare)


@pytest.mark.parametrize("text", ["", "# nothing\n", "~\n", "- a\n", "suite\n"])
def test_files_that_are_no_suite(text: str, faults: Faults) -> None:
    (found,) = faults(text)
    assert found.startswith(("1:1: ", "2:1: "))
    assert "bench: 1" in found


def test_a_file_that_is_no_yaml_gives_its_place_alone(faults: Faults) -> None:
    (found,) = faults("bench: 1\nmethods: {a: [}\n")
    assert found.startswith("2:15: not valid YAML")
