"""The example distribution: built and installed into an environment of its own, found, run to a row."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "bench-lisa"


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "BENCH_STORE")}
    environment.setdefault("BENCH_CACHE", str(ROOT / ".pytest_cache" / "bench"))
    environment |= {"OMP_NUM_THREADS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with the wheel; torch and the rest come from the environment of the tests."""
    pytest.importorskip("pip")
    folder = tmp_path_factory.mktemp("lisa")
    shutil.copytree(EXAMPLE, folder / "source")  # building leaves files behind
    venv.create(folder / "fresh", with_pip=False)
    python = folder / "fresh" / "bin" / "python"
    (own,) = (folder / "fresh" / "lib").glob("python*/site-packages")
    others = "".join(f"import site; site.addsitedir({place!r})\n" for place in site.getsitepackages())
    (own / "others.pth").write_text(f"{others}{ROOT}\n", encoding="utf-8")
    install = ("install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "./source")
    run(sys.executable, "-m", "pip", "--python", python, *install, cwd=folder)
    assert {path.name for path in own.iterdir()} == {"bench_lisa", "bench_lisa-0.1.0.dist-info", "others.pth"}
    return python


def bench(python: Path, folder: Path, *words: str) -> str:
    return run(python, "-c", "from harness.cli import main; main()", *words, cwd=folder)


def test_it_is_found_and_becomes_a_row(installed: Path, tmp_path: Path) -> None:
    (listed,) = [line for line in bench(installed, tmp_path, "list", "baseline").splitlines() if "bench-lisa" in line]
    assert listed.split()[0] == "lisa"
    suite = (EXAMPLE / "suite.yaml").read_text(encoding="utf-8")
    small = suite.replace("[200, 60, 100]", "[20, 8, 8]").replace("hidden: 32", "hidden: 8").replace("15}", "1}")
    assert small.count("8, 8]") == 1
    (tmp_path / "suite.yaml").write_text(small, encoding="utf-8")
    words = ("run", "suite.yaml", "--json", "--seeds", "1", "--store", "store", "--engine", "inline")
    rows = {row["method"]: row for row in json.loads(bench(installed, tmp_path, *words))["rows"]}
    assert set(rows) == {"ERM", "V-REx", "LISA"}
    assert rows["LISA"]["mean"] is not None


def test_its_own_tests_pass_where_it_is_installed(installed: Path, tmp_path: Path) -> None:
    for file in ("pyproject.toml", "tests/test_lisa.py"):
        shutil.copy(EXAMPLE / file, tmp_path)
    words = ("-v", "-p", "no:cacheprovider", "--bench-check", "environment/random", "test_lisa.py")
    told = run(installed, "-m", "pytest", *words, cwd=tmp_path)
    assert "failed" not in told
    assert "test_conformance[baseline/lisa-trains] PASSED" in told
    assert "environment/random-works PASSED" in told


def test_it_is_shaped_as_bench_new_makes_it() -> None:
    from harness.authoring import distribution, names_of
    from harness.registry.catalog import Catalog

    made = distribution(names_of("baseline", "lisa", Catalog([])))
    there = {path.relative_to(EXAMPLE).as_posix() for path in EXAMPLE.rglob("*") if path.is_file()}
    assert set(made) <= there
