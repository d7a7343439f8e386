"""Hooks of MkDocs: the pages that are made from the code when the site is built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import PurePosixPath

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from harness.cli import app
from harness.reference import components, suites
from harness.reference.components import escaped
from harness.registry.index import load_catalog

API = ("harness", "harness.nn", "harness.graphs")
EXAMPLES = {
    "bench": "bench run quick",
    "bench run": "bench run suites/quick.yaml --methods 'EQuAD*' --seeds 1,2,3 --jobs 2",
    "bench plan": "bench plan suites/ablation.yaml --verbose",
    "bench validate": "bench validate mine.yaml --set train.epochs=10",
    "bench report": "bench report quick --checkpoint both --statistics",
    "bench compare-to-record": "bench compare-to-record suites/quick.yaml --format latex --output table.tex",
    "bench compare": "bench compare 20260101-120000-quick-1a2b quick --methods 'EQuAD*'",
    "bench export": "bench export quick --output published --what results,suite,archive",
    "bench runs": "bench runs quick",
    "bench analyse": "bench analyse quick runtime cmd",
    "bench reproduce": "bench reproduce 3f9c1a2b",
    "bench debug": "bench debug suites/quick.yaml --methods ERM --epochs 2 --pdb",
    "bench profile": "bench profile suites/quick.yaml --methods CIGA --seeds 1",
    "bench list": "bench list baseline",
    "bench describe": "bench describe encoder/mvgrl",
    "bench check": "bench check my_method.py --verbose",
    "bench new": "bench new baseline my-method",
    "bench schema": "bench schema --output suite.schema.json",
    "bench doctor": "bench doctor",
    "bench data": "bench data list",
    "bench data list": "bench data list --data-dir /data/graphs",
    "bench data fetch": "bench data fetch ogb --set dataset=bace",
    "bench data verify": "bench data verify ogb --set dataset=bace",
    "bench data describe": "bench data describe two-piece --set spurious=0.7",
    "bench data path": "bench data path ogb --set dataset=bace",
    "bench cache": "bench cache size",
    "bench cache size": "bench cache size --json",
    "bench cache list": "bench cache list",
    "bench cache verify": "bench cache verify --repair",
    "bench cache gc": "bench cache gc --older-than 30d --yes",
    "bench cache push": "bench cache push /shared/bench-store suites/quick.yaml",
    "bench cache pull": "bench cache pull s3://bucket/bench quick",
}
"""An example of each command."""
_LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_ROLE = re.compile(r":(?:func|meth|class|attr|mod|data):<code>~?([\w.]+)</code>")


def generated() -> dict[str, str]:
    """Return the Markdown of each generated page by its address below ``docs/``."""
    catalog = load_catalog(strict=True)
    reference = {"cli.md": command_page(), "suite.md": suites.page(catalog), **components.pages(catalog)}
    reference |= {f"api/{module}.md": api_page(module) for module in API}
    return {f"reference/{address}": page for address, page in reference.items()}


def command_page() -> str:
    """Return the page of all commands: what each does, an example, every argument and option."""
    about = "Every command has `--help`. Shells complete all of it: [shell completion](../running.md#shell-completion)."
    sections = list(_sections(typer.Context(typer.main.get_command(app), info_name="bench")))
    return "\n\n".join([*sections[:1], about, *sections[1:]]) + "\n"


def _sections(context: typer.Context) -> Iterator[str]:
    """Yield the parts of a command, then those of its subcommands."""
    command, path = context.command, context.command_path
    yield f"{'#' * (path.count(' ') + 1)} {'Command line' if path == 'bench' else path}"
    yield escaped(command.help or "")
    yield f"```console\n$ {EXAMPLES[path]}\n```"
    records = [
        parameter.get_help_record(context) for parameter in command.get_params(context) if parameter.name != "help"
    ]
    for written, about in filter(None, records):
        yield f"`{written}`\n:   {escaped(about)}"
    for name, each in getattr(command, "commands", {}).items():
        yield from _sections(typer.Context(each, info_name=name, parent=context))


def api_names(module: str) -> list[str]:
    """Return the names that a module of the authors' API exports."""
    return [name for name in import_module(module).__all__ if not name.startswith("__")]


def api_page(module: str) -> str:
    """Return a page that mkdocstrings fills with signatures and docstrings."""
    about = (import_module(module).__doc__ or "").partition("\n\n")[0]
    return "\n\n".join([f"# {module}", about, *(f"::: {module}.{name}" for name in api_names(module))]) + "\n"


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
