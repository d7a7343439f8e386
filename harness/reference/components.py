"""Reference of components: a page for each kind, and where paper, public code and this code differ. No torch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from harness.component import BUILT_IN, KINDS
from harness.errors import UserError
from harness.hparams import HParam, condition_text
from harness.registry.catalog import Catalog, Entry
from harness.safe_io import json_text, parse_json_as, parse_yaml

_CODE = re.compile(r"(``.+?``|`[^`]*`)")
_SPECIAL = re.compile(r"([\\*|<])")
_WORD_END = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9{(])")
_BAR = re.compile(r"(?<!\\)\|")


def escaped(text: str) -> str:
    """Return text that Markdown shows unchanged, also within a table; code spans stay."""
    parts = _CODE.split(text)
    return "".join(
        _BAR.sub(r"\\|", part) if part.startswith("`") else _WORD_END.sub(r"\\_", _SPECIAL.sub(r"\\\1", part))
        for part in parts
    )


def prose(text: str) -> str:
    """Return a docstring that is Markdown already, with the signs that HTML would take for a tag escaped."""
    lines = []
    for line in text.strip().splitlines():
        parts = [line] if line.startswith("    ") else _CODE.split(line)
        lines.append("".join(part if part.startswith(("`", "    ")) else part.replace("<", r"\<") for part in parts))
    return "\n".join(lines)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


def code(value: object) -> str:
    """Return a code span for a cell of a table; nothing for an empty text."""
    text = str(value)
    return f"`{_BAR.sub(chr(92) + '|', text)}`" if text else ""


def value(given: Any) -> str:
    """Return a value as a suite writes it."""
    if isinstance(given, dict):
        return "{" + ", ".join(f"{name}: {value(item)}" for name, item in given.items()) + "}"
    if isinstance(given, bool):
        return str(given).lower()
    return "none" if given is None else str(given) or '""'


def bounds(low: float | None, high: float | None) -> str:
    """Return the least and the greatest value that are allowed, in words; nothing for none."""
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:g}" if high is not None else ""


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


_FOR_KIT = ("equals_erm", "foreign_statistics", "listed", "probes", "unused")
"""Traits for the conformance kit, and those that are shown beside what they belong to."""


def traits(entry: Entry) -> dict[str, Any]:
    """Return what the class declares about itself, without what it leaves empty."""
    return {name: value for name, value in entry.traits.items() if value and name not in _FOR_KIT}


def pages(catalog: Catalog) -> dict[str, str]:
    """Return the page of each kind that has a built-in component, by its address below ``reference/``."""
    built_in = [entry for entry in catalog if entry.plugin == BUILT_IN]
    by_kind = {kind: [entry for entry in built_in if entry.kind == kind] for kind in KINDS}
    return {f"components/{PLURALS[kind]}.md": _page(kind, entries) for kind, entries in by_kind.items() if entries}


def _page(kind: str, entries: Sequence[Entry]) -> str:
    rows = [[f"[`{entry.name}`](#{entry.name})", escaped(headline(entry))] for entry in entries]
    parts = [
        f"# {PLURALS[kind].capitalize()}",
        f"`bench list {kind}` and `bench describe {kind}/NAME` show the same on a terminal.",
        table([kind, "what it is, and whose"], rows),
    ]
    return "\n\n".join([*parts, *map(_section, entries)]) + "\n"


def _section(entry: Entry) -> str:
    parts = [f"## {entry.name} {{ #{entry.name} }}", prose(headline(entry)), prose(entry.doc)]
    if entry.hparams:
        headings = ["name", "meaning", "type", "default", "allowed", "search space"]
        parts += ["**Hyperparameters**", table(headings, list(map(_hyperparameter, entry.hparams.values())))]
    if declared := traits(entry):
        parts += ["**Traits**", table(["name", "value"], [[code(name), code(declared[name])] for name in declared])]
    if rows := deviations(entry):
        parts += ["**Where paper, public code and this code differ**", as_table(rows)]
    parts.append(f"Source: `{entry.module.replace('.', '/')}.py`")
    return "\n\n".join(parts)


def _hyperparameter(declared: HParam) -> list[str]:
    """Return the row of a hyperparameter: its search space is what ``tune: default`` tries."""
    meaning = escaped(declared.help)
    if declared.weight_of:
        meaning += f" (weighs the term `{declared.weight_of}`)"
    if declared.active:
        meaning += "; matters where " + " and ".join(code(condition_text(*item)) for item in declared.active.items())
    type_name = f"{declared.type} or none" if declared.optional else declared.type
    search, choices = (
        ", ".join(code(value(item)) for item in items or ()) for items in (declared.search, declared.choices)
    )
    allowed = choices or bounds(declared.low, declared.high)
    return [code(declared.name), meaning, code(type_name), code(value(declared.default)), allowed, search]
