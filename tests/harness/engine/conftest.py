"""Fixtures of the tests of engines on a real store."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import ToyStore


@pytest.fixture
def log(tmp_path: Path) -> ToyStore:
    """Where toy stages note that they ran."""
    return ToyStore(tmp_path / "log")
