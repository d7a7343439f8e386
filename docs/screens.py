"""Take the pictures of a run's page that README and site show: ``python docs/screens.py [--store FOLDER]``.

Runs ``benchmarks/recorded/screens.yaml`` unless the store has it (ten minutes on two idle cores), opens its page in
Chromium (``chromium`` on the path, or BENCH_CHROMIUM; extra `browser`), and writes ``docs/assets/page*.png``: wide, on
a phone, and a value's dialog in dark mode.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.engine import EngineOptions
from harness.report.html.page import write_page
from harness.run.execute import execute
from harness.run.session import Options, open_session

ROOT = Path(__file__).resolve().parents[1]
SUITE = ROOT / "benchmarks" / "recorded" / "screens.yaml"
CELL = "t1/Two-piece%20(0.7%2C%200.9)/EQuAD%2C%20reweighted%20ERM"
SCREENS = {
    "page.png": ("", {"viewport": {"width": 1280, "height": 840}}),
    "page-phone.png": ("", {"viewport": {"width": 390, "height": 1160}}),
    "page-dark.png": (f"#{CELL}", {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"}),
}
"""Name of the file -> where the page is opened, and the browser's settings."""


def page_of_run(store: Path | None, page: Path) -> Path:
    """Run the suite and write its page."""
    session = open_session(str(SUITE), Options(store=store))
    outcome = execute(session, EngineOptions(), lambda _: None)
    return write_page(outcome.record, outcome.results, session.store, page)


def take(page: Path, folder: Path) -> None:
    """Write each picture of the page."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("BENCH_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, (address, settings) in SCREENS.items():
            opened = browser.new_context(**settings).new_page()
            opened.goto(page.as_uri() + address)
            opened.wait_for_timeout(1000)  # curves are unpacked and drawn
            opened.screenshot(path=folder / name)
        browser.close()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path)
    with TemporaryDirectory() as folder:
        take(page_of_run(parser.parse_args().store, Path(folder) / "page.html"), ROOT / "docs" / "assets")


if __name__ == "__main__":
    main()
