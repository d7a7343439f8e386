"""Facts about the distribution and the shape of the source tree."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
import harness.graphs
import harness.nn
from harness.registry.index import load_catalog

ROOT = Path(__file__).resolve().parents[1]
CORE = sorted((ROOT / "harness").rglob("*.py"))
SOURCE = sorted(file for top in ("harness", "plugins", "tests", "benchmarks") for file in (ROOT / top).rglob("*.py"))
PROVIDES = {
    "torch": "torch",
    "torch_geometric": "torch-geometric",
    "GCL": "PyGCL",
    "sklearn": "scikit-learn",
    "numpy": "numpy",
    "scipy": "scipy",
    "safetensors": "safetensors",
    "rdkit": "rdkit",
    "pluggy": "pluggy",
    "typer": "typer",
    "rich": "rich",
    "yaml": "pyyaml",
    "psutil": "psutil",
    "jinja2": "jinja2",
    "pydantic": "pydantic",
    "pydantic_core": "pydantic",
    "fsspec": "fsspec",
    "requests": "requests",
    "tqdm": "tqdm",
}
"""Import name -> distribution, for everything that the installed code may import."""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def imported(file: Path) -> set[str]:
    """Top-level names of a file's absolute imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_the_version_is_the_package_s_own(project: dict[str, Any]) -> None:
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "harness.__version__"}
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (harness.__version__, "MIT")
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License")
    assert f"## {harness.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_pre_commit_runs_the_versions_that_make_installs() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    repositories = {item["repo"].rpartition("/")[2]: item for item in config["repos"]}
    pinned = re.search(r"^ruff==(.+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    assert repositories["ruff-pre-commit"]["rev"] == f"v{pinned[1]}"
    hooks = {hook["id"] for item in repositories.values() for hook in item["hooks"]}
    assert {"ruff-check", "ruff-format", "mypy", "check-yaml", "check-toml", "end-of-file-fixer"} <= hooks
    for item in repositories.values():
        assert item["repo"] == "local" or item["rev"].startswith("v")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an installation would hold, as setuptools lays it out."""
    folder = tmp_path_factory.mktemp("build")
    words = ["egg_info", "--egg-base", ".", "build", "--build-base", "base", "--build-lib", "lib"]
    words = [str(folder / word) if word in (".", "base", "lib") else word for word in words]
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "lib"


def test_every_module_and_data_file_is_installed(built: Path) -> None:
    tops = {"harness": "harness", "plugins": "plugins", "suites": "harness/suites"}
    expected = {
        f"{place}/{path.relative_to(ROOT / top).as_posix()}"
        for top, place in tops.items()
        for path in (ROOT / top).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    there = {path.relative_to(built).as_posix() for path in built.rglob("*") if path.is_file()}
    assert there == expected | {"equad_bench.py"}


def test_no_project_gets_the_pytest_plugin_unasked(project: dict[str, Any]) -> None:
    """It would import ``harness``, which in a project with a file of that name is another module."""
    assert "entry-points" not in project["project"]


def test_another_package_of_our_name_is_told(project: dict[str, Any], tmp_path: Path) -> None:
    assert project["project"]["scripts"] == {"bench": "equad_bench:main"}
    (tmp_path / "plugins").mkdir()

    def version() -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", "from equad_bench import main; main()", "--version"]  # looks in its folder first
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    assert version().stdout == f"bench {harness.__version__}\n", "a folder without __init__.py shadows nothing"
    for file in ("plugins/__init__.py", "harness.py"):
        (tmp_path / file).touch()
        told = version()
        assert (told.returncode, told.stdout) == (2, "")
        name = file.partition("/")[0].removesuffix(".py")
        assert told.stderr.startswith(f"error: {tmp_path / file} shadows the package '{name}' of bench; ")


def test_an_installation_finds_its_suites_and_components(built: Path, tmp_path: Path) -> None:
    code = (
        "import json, harness; from harness.suite.files import installed_suites, shipped; "
        "from harness.registry.discovery import built_in_sources; found = [s.module for s in built_in_sources()]; "
        "names = [[*shipped(kind)] for kind in ('bundles', 'protocols')]; "
        "print(json.dumps([harness.__file__, installed_suites(), *names, found]))"
    )
    here, there = (
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(place)},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for place in (ROOT, built)
    )
    assert Path(there[0]).is_relative_to(built)
    assert there[1:] == here[1:]
    assert all(there[1:])


@pytest.mark.parametrize("top", ["harness", "plugins"])
def test_only_declared_dependencies_are_imported(top: str, project: dict[str, Any]) -> None:
    declared = {re.split(r"[=<>]", text)[0] for text in project["project"]["dependencies"]}
    assert declared == set(PROVIDES.values())
    allowed = {*PROVIDES, "harness", "plugins", *sys.stdlib_module_names}
    foreign = {
        (str(file.relative_to(ROOT)), name) for file in (ROOT / top).rglob("*.py") for name in imported(file) - allowed
    }
    assert {(file, name) for file, name in foreign - UNDER_PYTEST if EXTRAS.get(name) not in extras(project)} == set()


EXTRAS = {
    "matplotlib": "matplotlib",
    "cycler": "matplotlib",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "tensorboardX": "tensorboardX",
    "mlflow": "mlflow-skinny",
    "wandb": "wandb",
    "dask": "dask",
    "distributed": "distributed",
    "dask_jobqueue": "dask-jobqueue",
    "optuna": "optuna",
}
"""What is imported only where it is used, and the package that an extra brings for it."""


def extras(project: dict[str, Any]) -> set[str]:
    groups = project["project"]["optional-dependencies"]
    return {re.split(r"[=<>\[]", text)[0] for name, texts in groups.items() if name != "test" for text in texts}


UNDER_PYTEST = {("harness/testing/pytest_plugin.py", "pytest")}
"""What only pytest and its users import."""


def test_every_dependency_is_imported() -> None:
    used = {name for file in SOURCE if file.parts[len(ROOT.parts)] in ("harness", "plugins") for name in imported(file)}
    unused = set(PROVIDES) - used - {"GCL"}  # imported by name, behind stand-ins
    assert not unused


def test_the_library_does_not_reach_into_the_command_line() -> None:
    """But for the reference, which documents it."""
    for file in (ROOT / "harness").rglob("*.py"):
        if file.relative_to(ROOT / "harness").parts[0] not in ("cli", "reference"):
            assert "harness.cli" not in file.read_text(encoding="utf-8"), file


def test_plugins_reach_the_core_through_its_api_alone() -> None:
    for file in (ROOT / "plugins").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        inner = [n.module for n in nodes if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("harness.")]
        inner += [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names if a.name.startswith("harness.")]
        assert {*inner} <= {"harness.graphs", "harness.nn"}, file


def test_importing_harness_imports_nothing_heavy() -> None:
    code = "import harness, sys; print(sorted({'torch', 'numpy', 'sklearn', 'torch_geometric'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_of_the_authors_api_loads() -> None:
    for module in (harness, harness.graphs, harness.nn):
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_the_core_names_no_method() -> None:
    """No word in a string and no identifier of the core, docstrings aside, is the name of a component.

    Datasets may be named, as messages show examples; analyses and trackers are no methods and bear plain words.
    """
    names = {entry.name for entry in load_catalog(strict=True) if entry.kind not in NAMED} - PLAIN
    assert {"mvgrl", "irm", "gin"} <= names
    found = [
        f"{file.relative_to(ROOT)}:{line}: {word}"
        for file in CORE
        for line, word in words(ast.parse(file.read_text(encoding="utf-8")))
        if word.lower().replace("_", "-") in names
    ]
    assert not found


NAMED = {"dataset", "analysis", "tracker"}
PLAIN = {"base", "domain", "oracle", "random", "size", "dir", "mlp", "leconv", "kmeans", "erm", "pygcl"}
"""Names that are words of their own: MLP and LEConv layers, k-means an algorithm, ``erm`` a loss term, PyGCL code."""


def words(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Identifiers, and words within strings that are not docstrings."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    docstrings |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # of attributes
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield from ((line, word) for word in re.findall(r"[\w-]+", node.value))
        for field in ("id", "attr", "arg", "name", "asname"):
            text = getattr(node, field, None)
            if isinstance(text, str):
                yield line, text


def test_no_module_is_long() -> None:
    lengths = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in SOURCE}
    assert not {name: length for name, length in lengths.items() if length > 400 and not name.startswith("tests/")}


def test_every_component_has_a_file_that_bears_its_name() -> None:
    for entry in load_catalog(strict=True):
        module = entry.module.split(".")
        if module[0] == "plugins":
            assert module[-1] == entry.name.replace("-", "_"), f"{entry.kind} {entry.name}"
