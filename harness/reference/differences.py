"""Deviations of components: where paper, public code and this code differ. For a terminal, and as a page. No torch."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from harness.component import KINDS
from harness.errors import UserError, did_you_mean
from harness.reference.markdown import escaped, table
from harness.registry.catalog import Catalog, Entry
from harness.safe_io import parse_yaml, read_text

MARKER = "<!-- Generated below this line by `make docs`; do not edit. -->"
_PARTS = {"paper": "paper", "public": "public code", "ours": "ours", "switch": "switch"}
_TEXTS = ("about", *_PARTS)
_FIRST = ("baseline", "decorrelator", "encoder", "quantifier", "environment")
PLURALS = {kind: f"{kind}s" for kind in KINDS} | {"analysis": "analyses"}


def deviations(entry: Entry) -> list[dict[str, str]]:
    """Read the rows of the file ``NAME.deviations.yaml`` beside a component's module; none where there is no file.

    Returns:
        for each row the texts ``about``, ``paper``, ``public``, ``ours`` and ``switch`` (empty where there is none).

    Raises:
        UserError: the file cannot be read, or is not a list of such rows.
    """
    path = Path(entry.file).with_name(f"{entry.name.replace('-', '_')}.deviations.yaml")
    if not path.is_file():
        return []
    try:
        rows = parse_yaml(read_text(path))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None
    if not isinstance(rows, list):
        raise UserError(f"{path}: expected a list of rows, found {type(rows).__name__}")
    return [_row(row, f"{path}, row {number}") for number, row in enumerate(rows, start=1)]


def _row(row: object, where: str) -> dict[str, str]:
    if not isinstance(row, dict):
        raise UserError(f"{where}: expected the keys {', '.join(_TEXTS)}, found {type(row).__name__}")
    for name in row:
        if name not in _TEXTS:
            hint = did_you_mean(str(name), _TEXTS)
            raise UserError(f"{where}: unknown key '{name}'{hint}; allowed: {', '.join(_TEXTS)}")
    texts = {"switch": "", **row}
    for name in _TEXTS:
        if not isinstance(texts.get(name), str):
            found = type(texts[name]).__name__ if name in texts else "nothing"
            raise UserError(f"{where}: expected a text for '{name}', found {found}")
    return {name: texts[name] for name in _TEXTS}


def headline(entry: Entry) -> str:
    """Return the first line of the module's docstring, which has the citation; empty if there is none."""
    try:
        text = ast.get_docstring(ast.parse(Path(entry.file).read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return ""
    return text.strip().splitlines()[0] if text and text.strip() else ""


def as_text(rows: Iterable[Mapping[str, str]], width: int) -> list[str]:
    """Return the lines of rows for a terminal: a block each, wrapped to ``width`` columns."""
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
    """Return a section for each kind, with a table for each built-in component that has deviations."""
    order = {kind: position for position, kind in enumerate((*_FIRST, *KINDS)) if kind not in _FIRST[:position]}
    deviating = [entry for entry in catalog if entry.plugin == "built-in" and deviations(entry)]
    deviating.sort(key=lambda entry: (order[entry.kind], entry.name))
    sections = []
    for kind, entries in groupby(deviating, key=lambda entry: entry.kind):
        sections.append(f"## {PLURALS[kind].capitalize()}")
        sections += [_component(entry) for entry in entries]
    return "\n\n".join(sections) + "\n"


def _component(entry: Entry) -> str:
    file = entry.module.replace(".", "/") + ".py"
    head = f"### {entry.name}\n\n[{file}](../{file}): {escaped(headline(entry))}\n\n{escaped(entry.summary)}"
    return f"{head}\n\n{as_table(entry)}"


def as_table(entry: Entry) -> str:
    """Return the deviations of a component as a Markdown table."""
    rows = []
    for row in deviations(entry):
        switch = f"`{row['switch']}`" if row["switch"] and "`" not in row["switch"] else row["switch"]
        rows.append([escaped(row[name]) for name in ("about", "paper", "public", "ours")] + [switch])
    return table(["", *_PARTS.values()], rows)


def renewed(page: str, catalog: Catalog) -> str:
    """Return a page with the part below its marker line generated again.

    Raises:
        UserError: the page has no marker line.
    """
    head, found, _ = page.partition(MARKER)
    if not found:
        raise UserError(f"the page has no line '{MARKER}'")
    return f"{head}{MARKER}\n\n{as_markdown(catalog)}"


def main(arguments: Sequence[str]) -> None:
    """Generate the named pages again."""
    from harness.registry.index import load_catalog

    catalog = load_catalog(strict=True)
    for name in arguments:
        path = Path(name)
        path.write_text(renewed(path.read_text(encoding="utf-8"), catalog), encoding="utf-8")
