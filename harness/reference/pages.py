"""Every generated page of the documentation site, by its address below ``docs/``. Nothing here is kept in a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from harness.reference import api, commands, components, hook_page, suites
from harness.registry.catalog import Catalog

FOLDER = "reference"
_LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def generated(catalog: Catalog, root: Path) -> dict[str, str]:
    """Address -> page: the reference, and the README as the first page.

    Args:
        catalog: the components to describe.
        root: the checkout, where the README is.
    """
    reference = {
        "cli.md": commands.page(),
        "suite.md": suites.page(catalog),
        "hooks.md": hook_page.page(),
        **api.pages(),
        **components.pages(catalog),
    }
    readme = (root / "README.md").read_text(encoding="utf-8")
    return {"index.md": first_page(readme)} | {f"{FOLDER}/{address}": page for address, page in reference.items()}


def first_page(readme: str) -> str:
    """The README as it would stand in ``docs/``."""

    def moved(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if ":" in target:
            return match[0]
        inside = target.startswith("docs/")
        return f"[{text}]({target.removeprefix('docs/') if inside else f'../{target}'}{anchor})"

    return _LINK.sub(moved, readme)


def navigation(items: list[object], addresses: Mapping[str, str]) -> list[object]:
    """A navigation with each entry ``folder/`` replaced by the generated pages of that folder, in their order."""
    made: list[object] = []
    for item in items:
        if isinstance(item, str) and item.endswith("/"):
            made += [address for address in addresses if address.startswith(item)]
        elif isinstance(item, dict):
            made.append({k: navigation(v, addresses) if isinstance(v, list) else v for k, v in item.items()})
        else:
            made.append(item)
    return made


def without_source_links(page: str, address: str) -> str:
    """A page whose links to files of the repository that are no pages, such as source, are plain text.

    Args:
        page: Markdown.
        address: of the page, below ``docs/``.
    """

    def shown(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        if ":" in target or not _leaves(address, target):
            return match[0]
        return text if text.startswith("`") or "/" not in text else f"`{text}`"

    return _LINK.sub(shown, page)


def _leaves(address: str, target: str) -> bool:
    """Whether a relative link leads out of ``docs/``."""
    depth = len(PurePosixPath(address).parent.parts)
    for part in PurePosixPath(target).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False
