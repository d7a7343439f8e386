"""Fixtures of the downloads' tests: no proxy between, and a server that ends with its test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from web_kit import Site


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's proxies out."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()
