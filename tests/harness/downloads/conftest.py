"""Fixtures of the downloads' tests: no proxy between, and a server that ends with its test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from web_kit import Site

from harness.downloads import transfer


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's proxies out."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less and give up sooner."""
    for name, value in (("_TIMEOUT", 0.6), ("_ATTEMPTS", 3), ("_PAUSE", 0.01)):
        monkeypatch.setattr(transfer, name, value)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()
