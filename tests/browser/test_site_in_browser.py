"""The documentation site in headless Chromium, opened from the disk."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two pages, built with the settings of the documentation."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    pages, folder = tmp_path / "docs", tmp_path / "site"
    shutil.copytree(ROOT / "docs" / "assets", pages / "assets")
    (pages / "below").mkdir()
    (pages / "index.md").write_text("# First\n\n[second](below/second.md)\n", encoding="utf-8")
    (pages / "below" / "second.md").write_text("# Second\n\nThe word quokka.\n", encoding="utf-8")
    nav = ["index.md", "below/second.md"]
    config: Any = load_config(str(ROOT / "mkdocs.yml"), docs_dir=str(pages), site_dir=str(folder), hooks=[], nav=nav)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return folder


def test_the_search_works_from_the_disk(site, show) -> None:
    for address in ("index.html", "below/second.html"):
        page = show(site / address)
        page.locator(".md-search__input").click()
        page.keyboard.type("quokka")
        found = page.locator(".md-search-result__link").first
        found.wait_for()
        assert (found.get_attribute("href") or "").partition("?")[0] == (site / "below" / "second.html").as_uri()
