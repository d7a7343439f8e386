"""``bench new``: what it makes works at once, is clean for linters, and nothing is overwritten."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from harness.authoring import LONGEST, distribution, names_of, single_file, write
from harness.cli.main import main
from harness.component import KINDS
from harness.engine import EngineOptions
from harness.errors import UserError
from harness.registry.catalog import Catalog
from harness.registry.discovery import file_source, load_source
from harness.registry.index import load_catalog
from harness.report import make_report, render
from harness.run.execute import execute
from harness.run.session import Options, open_session
from harness.suite import Overrides
from harness.testing import check_component

ROOT = Path(__file__).resolve().parents[3]
LONG = "a-name-of-many-words-to-try-the-limit-99"
assert len(LONG) == LONGEST


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_CACHE", os.environ.get("BENCH_CACHE", str(ROOT / ".pytest_cache" / "bench")))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a component of each kind, ``new-KIND``, and its suite."""
    folder = tmp_path_factory.mktemp("made")
    for kind in KINDS:
        write(folder, single_file(names_of(kind, f"new-{kind}", Catalog([]))))
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_it_passes_the_conformance_kit(kind: str, made: Path) -> None:
    (component,) = load_source(file_source(made / f"new_{kind}.py"))
    report = check_component(component)
    assert report.passed, report.text()
    assert len(report.with_status("ok")) > len(report.with_status("skipped"))


ALL = """\
bench: 1
name: all-new
plugins: [{plugins}]
seeds: [1]
train: {{epochs: 1}}
model: {{backbone: new-backbone, layers: 2, hidden: 8}}
datasets:
  New data: {{use: new-dataset, graphs: 24}}
methods:
  ERM: {{baseline: erm}}
  New baseline: {{baseline: new-baseline, envs: new-environment(2)}}
  New pipeline:
    encoder: {{use: new-encoder, layers: 2, hidden: 8, snapshots: [1]}}
    quantifier: new-quantifier
    decorrelator: new-decorrelator
analyses: {{New analysis: new-analysis}}
trackers: [new-tracker]
"""


def test_one_of_each_kind_makes_a_table(made: Path, tmp_path: Path) -> None:
    plugins = ", ".join(str(made / f"new_{kind}.py") for kind in KINDS)
    (tmp_path / "all.yaml").write_text(ALL.format(plugins=plugins), encoding="utf-8")
    options = Options(store=tmp_path / "store", data_dir=tmp_path)
    outcome = execute(open_session(str(tmp_path / "all.yaml"), options), EngineOptions("inline"), lambda _: None)
    results = outcome.results
    values = {row.method: row.value for row in results.rows if row.split == "test"}
    assert set(values) == {"ERM", "New baseline", "New pipeline"}
    assert None not in values.values()
    assert "New pipeline" in render(make_report(results), "plain")
    assert outcome.exit_code == 0
    (table,) = (tmp_path / "store").rglob("cells.csv")
    assert len(table.read_text(encoding="utf-8").splitlines()) > len(values)
    assert list((tmp_path / "store").rglob("analyses/*/table.csv"))


@pytest.mark.parametrize("kind", KINDS)
def test_its_suite_holds_it_as_a_row(kind: str, made: Path, tmp_path: Path) -> None:
    options = Options(store=tmp_path, data_dir=tmp_path, overrides=Overrides(seeds="1"))
    session = open_session(str(made / f"new_{kind}.yaml"), options)
    assert f"new-{kind}" in str(session.suite)
    assert len(session.suite.rows) * len(session.suite.datasets) >= 2


def files_of_all(folder: Path) -> Iterator[Path]:
    """Single files and distributions of the longest and of a short name."""
    for name in (LONG, "x1"):
        for kind in KINDS:
            names = names_of(kind, name, Catalog([]))
            yield from write(folder / name / kind, single_file(names))
            yield from write(folder / name / f"{kind}-package", distribution(names))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    folder = tmp_path_factory.mktemp("many")
    return folder, list(files_of_all(folder))


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)], cwd=cwd, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("words", [("check",), ("check", "--select", "E,F,W,I,UP,B,SIM"), ("format", "--check")])
@pytest.mark.parametrize("width", ["88", "120"])
def test_ruff_has_nothing_to_say(many: tuple[Path, list[Path]], words: Sequence[str], width: str) -> None:
    pytest.importorskip("ruff")
    folder, _ = many
    assert not run("ruff", *words, "--isolated", "--no-cache", "--line-length", width, ".", cwd=folder)


def test_every_file_of_a_distribution_is_sound(many: tuple[Path, list[Path]]) -> None:
    _, files = many
    for file in files:
        text = file.read_text(encoding="utf-8")
        for word in ("new-component", "new_component", "NewComponent", "new component", "component-kind"):
            assert word not in text, file
        assert not [line for line in text.splitlines() if line != line.rstrip()], file
        if file.suffix in (".yaml", ".yml"):
            assert yaml.safe_load(text)
        elif file.suffix == ".py":
            ast.parse(text)
    project = tomllib.loads((files[0].parents[1] / "baseline-package" / "pyproject.toml").read_text(encoding="utf-8"))
    module = LONG.replace("-", "_")
    assert project["project"]["entry-points"]["equad_bench"] == {LONG: f"bench_{module}.{module}"}
    assert project["tool"]["setuptools"]["packages"] == [f"bench_{module}"]


def bench(*words: str, code: int, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["new", *words])
    told = capsys.readouterr()
    assert int(ended.value.code or 0) == code, told.out + told.err
    return told.out if code < 2 else told.err


def test_it_says_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = bench("baseline", "first-method", code=0, capsys=capsys).splitlines()
    assert lines[0] == "wrote first_method.py, first_method.yaml"
    assert lines[1] == "the example: Penalise differences of the environments' risks (Krueger et al., ICML 2021)."
    commands = [line.split(" # ")[0].strip() for line in lines[3:]]
    assert commands == ["bench check first_method.py", "bench plan first_method.yaml", "bench run first_method.yaml"]
    lines = bench("baseline", "first-method", "--package", code=0, capsys=capsys).splitlines()
    assert "pip install -e bench-first-method && bench check baseline/first-method" in lines[3]
    assert {path.name for path in (tmp_path / "bench-first-method").rglob("*") if path.is_file()} >= {
        *("pyproject.toml", "README.md", "ci.yml", "suite.yaml", "py.typed", "first_method.py", "test_first_method.py")
    }


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "first_method.yaml").write_text("mine\n", encoding="utf-8")
    told = bench("baseline", "first-method", "--folder", str(tmp_path), code=2, capsys=capsys)
    assert f"{tmp_path / 'first_method.yaml'} is there already, and nothing was written" in told
    assert [path.name for path in tmp_path.iterdir()] == ["first_method.yaml"]
    assert (tmp_path / "first_method.yaml").read_text(encoding="utf-8") == "mine\n"
    told = bench("baseline", "first-method", "--folder", str(tmp_path / "first_method.yaml"), code=2, capsys=capsys)
    assert "cannot write" in told


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("baselin", "x", "no kind is called 'baselin' (did you mean 'baseline'?)"),
        ("baseline", "MyMethod", "is not a name for a component"),
        ("baseline", "my_method", "is not a name for a component"),
        ("baseline", "../x", "is not a name for a component"),
        ("baseline", "", "is not a name for a component"),
        ("baseline", "x" * 41, "at most 40 characters"),
        ("baseline", "class", "a word of Python's"),
        ("baseline", "true", "a word of Python's"),
        ("baseline", "random", "the name of another Python module"),
        ("baseline", "torch", "the name of another Python module"),
        ("encoder", "network", "a name in the example"),
        ("dataset", "raw-graph", "a name in the example"),
    ],
)
def test_names_that_cannot_be_are_refused(kind: str, name: str, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        names_of(kind, name, Catalog([]))
    assert expected in str(caught.value)


def test_a_name_that_is_taken_is_refused() -> None:
    catalog = load_catalog()
    with pytest.raises(UserError, match=r"the baseline 'erm' is there already \(.*erm\.py\); .* 'my-erm'"):
        names_of("baseline", "erm", catalog)
    assert names_of("encoder", "erm", catalog).module == "erm", "another kind may have it"


def test_the_template_s_own_name_works() -> None:
    names = names_of("baseline", "new-component-2", Catalog([]))
    text = single_file(names)["new_component_2.py"]
    assert "class NewComponent2(Baseline)" in text
    assert 'name = "new-component-2"' in text
