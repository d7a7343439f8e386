"""Pages of the built-in components, one for each kind: headline, docstring, hyperparameters, facts, deviations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.component import BUILT_IN, KINDS
from harness.hparams import HParam, condition_text
from harness.reference.differences import PLURALS, as_table, deviations, headline
from harness.reference.markdown import bounds, code, escaped, prose, table, value
from harness.registry.catalog import Catalog, Entry

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
