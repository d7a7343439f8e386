"""For each component, where paper, public code and this code differ: for a terminal, and as a page. No torch."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from harness.catalog import Catalog, Entry
from harness.component import KINDS
from harness.errors import UserError
from harness.reference.markdown import escaped, table

MARKER = "<!-- Generated below this line by `make docs`; do not edit. -->"
_PARTS = {"paper": "paper", "public": "public code", "ours": "ours", "switch": "switch"}
_FIRST = ("baseline", "decorrelator", "encoder", "quantifier", "environment")
PLURALS = {kind: f"{kind}s" for kind in KINDS} | {"analysis": "analyses"}


def deviations(entry: Entry) -> list[Mapping[str, str]]:
    """What a component declares, a row each: ``about``, ``paper``, ``public``, ``ours``, ``switch``."""
    return list(entry.traits.get("deviations", ()))


def headline(entry: Entry) -> str:
    """The first line of the module's docstring: what it is, with the citation. Empty where there is none."""
    try:
        text = ast.get_docstring(ast.parse(Path(entry.file).read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return ""
    return text.strip().splitlines()[0] if text and text.strip() else ""


def as_text(rows: Iterable[Mapping[str, str]], width: int) -> list[str]:
    """Rows for a terminal: a block each, its parts one below the other, wrapped to ``width`` columns."""
    indent = 4 + max(map(len, _PARTS.values())) + 2
    lines = []
    for row in rows:
        lines += _wrapped(row["about"], width, "  ", "  ")
        for part, title in _PARTS.items():
            if row[part]:
                lines += _wrapped(row[part], width, f"    {title}".ljust(indent), " " * indent)
    return lines


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def as_markdown(catalog: Catalog) -> str:
    """A section for each kind, and in it a table for each built-in component that declares deviations."""
    order = {kind: position for position, kind in enumerate((*_FIRST, *KINDS)) if kind not in _FIRST[:position]}
    told = [entry for entry in catalog if entry.plugin == "built-in" and deviations(entry)]
    told.sort(key=lambda entry: (order[entry.kind], entry.name))
    sections = []
    for kind, entries in groupby(told, key=lambda entry: entry.kind):
        sections.append(f"## {PLURALS[kind].capitalize()}")
        sections += [_component(entry) for entry in entries]
    return "\n\n".join(sections) + "\n"


def _component(entry: Entry) -> str:
    file = entry.module.replace(".", "/") + ".py"
    head = f"### {entry.name}\n\n[{file}](../{file}): {escaped(headline(entry))}\n\n{escaped(entry.summary)}"
    return f"{head}\n\n{as_table(entry)}"


def as_table(entry: Entry) -> str:
    """What a component declares, as a Markdown table."""
    rows = []
    for each in deviations(entry):
        switch = f"`{each['switch']}`" if each["switch"] and "`" not in each["switch"] else each["switch"]
        rows.append([escaped(each[name]) for name in ("about", "paper", "public", "ours")] + [switch])
    return table(["", *_PARTS.values()], rows)


def renewed(page: str, catalog: Catalog) -> str:
    """A page with the part below its marker line made anew.

    Raises:
        UserError: the page has no marker line.
    """
    head, found, _ = page.partition(MARKER)
    if not found:
        raise UserError(f"the page has no line '{MARKER}'")
    return f"{head}{MARKER}\n\n{as_markdown(catalog)}"


def main(arguments: Sequence[str]) -> None:
    """Renew the pages that the arguments name."""
    from harness.index import load_catalog

    catalog = load_catalog(strict=True)
    for name in arguments:
        path = Path(name)
        path.write_text(renewed(path.read_text(encoding="utf-8"), catalog), encoding="utf-8")
