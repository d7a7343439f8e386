"""Provenance: what a run was made with, found without importing it."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from harness.engine.provenance import provenance, repository, versions
from harness.store import canonical


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    (tmp_path / "file.py").write_text("1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "file.py")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_versions_are_those_that_are_installed() -> None:
    found = versions()
    assert found["python"] == platform.python_version()
    assert found["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert {"numpy", "scikit-learn", "torch-geometric", "rdkit", "equad-bench"} <= set(found)


def test_it_says_what_a_reader_needs_and_is_plain_json(checkout: Path) -> None:
    told = provenance([checkout / "file.py", checkout.parent / "elsewhere" / "file.py"])
    assert {"versions", "platform", "cpu", "cores", "device", "threads_per_worker", "repository", "command"} <= set(
        told
    )
    assert told["plugins"]["01/file.py"]["changed"] is False
    assert told["plugins"]["02/file.py"] is None, "a file of the same name in another folder"
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert canonical(told)


def test_a_repository_is_told_with_its_state(checkout: Path) -> None:
    first = repository(checkout)
    assert first is not None
    assert len(first["commit"]) == 40
    assert first["changed"] is False
    (checkout / "new.txt").touch()
    assert repository(checkout) == first, "files that are not tracked change no code"
    (checkout / "file.py").write_text("2\n")
    assert repository(checkout) == {**first, "changed": True}


def test_a_folder_that_a_repository_does_not_track_has_none(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (checkout / "venv").mkdir()
    assert repository(checkout / "venv") is None
    assert repository(tmp_path_factory.mktemp("bare")) is None
    assert repository(checkout / "gone") is None


def test_without_git_there_is_no_repository(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert repository(checkout) is None
    assert provenance()["versions"]


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from harness.engine.provenance import provenance; provenance()\n"
        "print([name for name in ('torch', 'numpy', 'rdkit', 'sklearn', 'GCL') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
