"""Deviations of components: where paper, public code and this code differ. For a terminal, and as a page. No torch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from harness.component import BUILT_IN, KINDS
from harness.errors import UserError
from harness.reference.markdown import escaped, table
from harness.registry.catalog import Catalog, Entry
from harness.safe_io import json_text, parse_json_as, parse_yaml

MARKER = "<!-- Generated below this line by `make docs`; do not edit. -->"
_PARTS = {"paper": "paper", "public": "public code", "ours": "ours", "switch": "switch"}
_FIRST = ("baseline", "decorrelator", "encoder", "quantifier", "environment")
PLURALS = {kind: f"{kind}s" for kind in KINDS} | {"analysis": "analyses"}


@dataclass(frozen=True)
class Deviation:
    """Something in which paper, public code and this code differ, and the setting that gives the other behaviour."""

    about: str
    paper: str
    public: str
    ours: str
    switch: str = ""


def deviations(entry: Entry) -> list[Deviation]:
    """Read the rows of the file ``NAME.deviations.yaml`` beside a component's module; none where there is no file.

    Raises:
        UserError: the file cannot be read, or is not a list of such rows.
    """
    path = Path(entry.file).with_name(f"{entry.name.replace('-', '_')}.deviations.yaml")
    if not path.is_file():
        return []
    try:
        return parse_json_as(list[Deviation], json_text(parse_yaml(path.read_text(encoding="utf-8"))))
    except (OSError, TypeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None


def headline(entry: Entry) -> str:
    """Return the first line of the module's docstring, which has the citation; empty if there is none."""
    try:
        text = ast.get_docstring(ast.parse(Path(entry.file).read_bytes())) or ""
    except (OSError, SyntaxError, ValueError):
        return ""
    return text.partition("\n")[0]


def as_text(rows: Iterable[Deviation]) -> Iterator[str]:
    """Yield the lines of rows for a terminal: a block each."""
    for row in rows:
        yield f"  {row.about}"
        for part, title in _PARTS.items():
            if getattr(row, part):
                yield f"    {title:<11}  {getattr(row, part)}"


def as_markdown(catalog: Catalog) -> str:
    """Return a section for each kind, with a table for each built-in component that has deviations."""
    order = list(dict.fromkeys((*_FIRST, *KINDS)))
    deviating = [entry for entry in catalog if entry.plugin == BUILT_IN and deviations(entry)]
    deviating.sort(key=lambda entry: (order.index(entry.kind), entry.name))
    sections = []
    for kind, entries in groupby(deviating, key=lambda entry: entry.kind):
        sections.append(f"## {PLURALS[kind].capitalize()}")
        for entry in entries:
            file = entry.module.replace(".", "/") + ".py"
            about = f"[{file}](../{file}): {escaped(headline(entry))}"
            sections += [f"### {entry.name}", about, escaped(entry.summary), as_table(deviations(entry))]
    return "\n\n".join(sections) + "\n"


def as_table(rows: Iterable[Deviation]) -> str:
    """Return deviations as a Markdown table."""
    lines = []
    for row in rows:
        switch = f"`{row.switch}`" if row.switch and "`" not in row.switch else row.switch
        lines.append([*map(escaped, (row.about, row.paper, row.public, row.ours)), switch])
    return table(["", *_PARTS.values()], lines)


def renewed(page: str, catalog: Catalog) -> str:
    """Return a page with the part below its marker line generated again.

    Raises:
        UserError: the page has no marker line.
    """
    head, found, _ = page.partition(MARKER)
    if not found:
        raise UserError(f"the page has no line '{MARKER}'")
    return f"{head}{MARKER}\n\n{as_markdown(catalog)}"
