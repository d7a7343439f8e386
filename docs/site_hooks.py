"""Hooks of MkDocs: the pages that are made from the code and the README when the site is built."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path, PurePosixPath

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click

from harness.cli import app
from harness.reference import components, suites
from harness.registry.index import load_catalog

ROOT = Path(__file__).resolve().parents[1]
API = ("harness", "harness.nn", "harness.graphs")
_LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_ROLE = re.compile(r":(?:func|meth|class|attr|mod|data):<code>~?([\w.]+)</code>")


def generated() -> dict[str, str]:
    """Return the Markdown of each generated page by its address below ``docs/``."""
    catalog = load_catalog(strict=True)
    reference = {"cli.md": command_page(), "suite.md": suites.page(catalog), **components.pages(catalog)}
    reference |= {f"api/{module}.md": api_page(module) for module in API}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return {"index.md": first_page(readme)} | {f"reference/{address}": page for address, page in reference.items()}


def command_page() -> str:
    """Return what Typer says of every command."""
    command = typer.main.get_command(app)
    return get_docs_for_click(obj=command, ctx=typer.Context(command), name="bench", title="Command line")


def api_names(module: str) -> list[str]:
    """Return the names that a module of the authors' API exports."""
    return [name for name in import_module(module).__all__ if not name.startswith("__")]


def api_page(module: str) -> str:
    """Return a page that mkdocstrings fills with signatures and docstrings."""
    about = (import_module(module).__doc__ or "").partition("\n\n")[0]
    return "\n\n".join([f"# {module}", about, *(f"::: {module}.{name}" for name in api_names(module))]) + "\n"


def first_page(readme: str) -> str:
    """Return the README with its links as they are from ``docs/``."""

    def moved(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if ":" in target:
            return match[0]
        inside = target.startswith("docs/")
        return f"[{text}]({target.removeprefix('docs/') if inside else f'../{target}'}{anchor})"

    return _LINK.sub(moved, readme)


def without_source_links(page: str, address: str) -> str:
    """Return a page whose links to files outside ``docs/``, which are not part of the site, are plain text."""
    depth = len(PurePosixPath(address).parent.parts)

    def shown(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        if ":" in target or PurePosixPath(target).parts.count("..") <= depth:
            return match[0]
        return text if text.startswith("`") or "/" not in text else f"`{text}`"

    return _LINK.sub(shown, page)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for address, text in generated().items():
        files.append(File.generated(config, address, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Name source files instead of linking them."""
    del config, files
    return without_source_links(markdown, page.file.src_uri)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link the names that docstrings refer to, where a page has them."""
    del page, config, files
    return _ROLE.sub(r'<autoref optional identifier="\1"><code>\1</code></autoref>', html)
