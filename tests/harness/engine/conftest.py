"""Fixtures of the tests of engines."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import ToyStore


@pytest.fixture
def store(tmp_path: Path) -> ToyStore:
    """An empty store, ready for a run."""
    made = ToyStore(tmp_path / "store")
    made.require_writable()
    return made
