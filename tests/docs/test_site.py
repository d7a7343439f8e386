"""The documentation site builds without a warning, needs no network, and every page can be reached."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import site_hooks
from docs_kit import ROOT


class Page(HTMLParser):
    """What a page fetches by itself, and where it leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "a":
            self.links.append(given.get("href") or "")
        elif tag in ("link", "script", "img", "iframe", "source"):
            self.fetched.append(given.get("href") or given.get("src") or "")


def test_every_page_of_the_folder_is_built(site: Path) -> None:
    """Strict: that each is in the navigation, and that links and anchors lead somewhere, the build itself checks."""
    written = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert {page.parent / "index" if page.name == "README" else page for page in written} <= built
    assert {Path("index"), Path("reference/cli"), Path("reference/suite"), Path("reference/hooks")} <= built


def test_a_page_fetches_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        foreign = [
            address for address in Page(path.read_text(encoding="utf-8")).fetched if re.match(r"\w+:|//", address)
        ]
        assert not [address for address in foreign if not address.startswith("data:")], path
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(?:https?:)?//|@import", path.read_text(encoding="utf-8")), path


def test_every_page_can_be_reached_from_the_first(site: Path) -> None:
    seen: set[Path] = set()
    todo = [site / "index.html"]
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        links = [link.partition("#")[0] for link in Page(path.read_text(encoding="utf-8")).links]
        todo += [(path.parent / link).resolve() for link in links if link and ":" not in link]
    assert {path for path in site.rglob("*.html") if path.name != "404.html"} <= seen


def test_source_is_named_and_pages_are_linked() -> None:
    page = "[plugins/a.py](../plugins/a.py), [b](b.md#c), [`x`](../../suites/x.yaml), [out](https://example.org/a)"
    told = "`plugins/a.py`, [b](b.md#c), `x`, [out](https://example.org/a)"
    assert site_hooks.without_source_links(page, "deviations.md") == told
    assert "[a](../datasets.md)" in site_hooks.without_source_links("[a](../datasets.md)", "tutorials/a.md")
