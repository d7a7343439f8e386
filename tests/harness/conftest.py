"""Fixtures that several tests of the core share."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")
