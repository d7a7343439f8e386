"""Hooks of MkDocs: the pages that are made from the code when the site is built (see ``harness.reference.pages``)."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from harness.reference.pages import generated, navigation, without_source_links
from harness.registry.index import load_catalog

PAGES = generated(load_catalog(strict=True), Path(__file__).resolve().parents[1])


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the generated pages into the navigation."""
    config.nav = navigation(config.nav or [], PAGES)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for address, text in PAGES.items():
        files.append(File.generated(config, address, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Source files are named, not linked: they are not part of the site."""
    del config, files
    return without_source_links(markdown, page.file.src_uri)
