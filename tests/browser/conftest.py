"""A headless Chromium, and pages that complain of every error and every request."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HARNESS = Path(__file__).resolve().parents[1] / "harness"
sys.path[:0] = [str(HARNESS / "report"), str(HARNESS)]  # html_kit, and results_kit that it takes

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium; skips where it or playwright is not installed."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `browser`)")
    given = os.environ.get("BENCH_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if given is None:
        pytest.skip("no Chromium: install the system package `chromium`, or set BENCH_CHROMIUM")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=given, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def meters() -> dict[Any, Any]:
    """Page -> the session that measures it."""
    return {}


@pytest.fixture
def busy(meters: dict[Any, Any]) -> Callable[[Any], float]:
    """Seconds of processor time that a page's main thread has used: what a busy machine does not change."""

    def seconds(page: Any) -> float:
        found = meters[page].send("Performance.getMetrics")["metrics"]
        return float(next(item["value"] for item in found if item["name"] == "TaskDuration"))

    return seconds


@pytest.fixture
def show(browser: Any, meters: dict[Any, Any]) -> Iterator[Callable[..., Any]]:
    """Open a file in a context of its own. After the test: no error, no warning, no request beyond the file."""
    faults: list[str] = []
    contexts = []

    def opened(path: Path, address: str = "", *, script: str = "", **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        if script:
            context.add_init_script(script)
        page = context.new_page()
        meters[page] = context.new_cdp_session(page)
        meters[page].send("Performance.enable", {"timeDomain": "threadTicks"})
        page.set_default_timeout(20_000)
        page.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: _check(request.url, faults))
        page.goto(path.as_uri() + address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not faults


def _check(url: str, faults: list[str]) -> None:
    if not url.startswith(("file:", "data:", "blob:")):
        faults.append(f"request: {url}")
