"""Fixtures of the documentation's tests."""

from __future__ import annotations

import os

import pytest
from docs_kit import ROOT, Desk


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    os.environ.setdefault("BENCH_CACHE", str(ROOT / ".pytest_cache" / "bench"))
    return Desk(tmp_path_factory.mktemp("docs"))
