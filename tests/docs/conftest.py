"""Fixtures of the documentation's tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from docs_kit import ROOT, Desk

from harness.engine.contract import Job
from harness.engine.supervisor import prepare_fork_server

sys.path.append(str(ROOT / "docs"))  # for site_hooks


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    os.environ.setdefault("BENCH_CACHE", str(ROOT / ".pytest_cache" / "bench"))
    prepare_fork_server(Job.preload)  # plugins of the pages are read in forks, as by a run; each would load torch anew
    return Desk(tmp_path_factory.mktemp("docs"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` does; a warning ends the build."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        from mkdocs.commands.build import build
        from mkdocs.config import load_config

        folder = tmp_path_factory.mktemp("site")
        config: Any = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
    return folder
