"""The files around the code: versions that must agree, and a licence and a citation that machines can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from harness import __version__

ROOT = Path(__file__).resolve().parents[1]


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("==") for line in lines if "==" in line)
    return {name.strip(): version.strip() for name, _, version in pairs}


def test_pre_commit_runs_the_versions_that_make_installs() -> None:
    repositories = {item["repo"].rpartition("/")[2]: item for item in read(".pre-commit-config.yaml")["repos"]}
    assert repositories["ruff-pre-commit"]["rev"] == f"v{pinned()['ruff']}"
    hooks = {hook["id"] for item in repositories.values() for hook in item["hooks"]}
    assert {"ruff-check", "ruff-format", "mypy", "check-yaml", "check-toml", "end-of-file-fixer"} <= hooks
    for item in repositories.values():
        assert item["repo"] == "local" or item["rev"].startswith("v")


def test_licence_citation_and_changelog() -> None:
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License")
    citation = read("CITATION.cff")
    assert citation["license"] == "MIT"
    assert citation["version"] == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
