"""The components as pages, one for each kind: what they are, whose they are, and all that a suite may set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.component import KINDS
from harness.hparams import HParam, condition_text
from harness.reference.differences import PLURALS, as_table, deviations, headline
from harness.reference.markdown import cell, code, docstring, escaped, table
from harness.registry.catalog import Catalog, Entry

_FACTS = {
    "needs": "needs",
    "provides": "provides",
    "requires": "reads of the dataset",
    "default_environment": "environments unless a suite says otherwise",
    "tasks": "tasks",
    "oracle": "opens the oracle fields",
    "oracle_where_there": "opens, where a dataset has them, the oracle fields",
    "reads_validation_score": "is handed the validation score after each epoch",
    "opens_test": "reads labels or domains of test splits when it presents",
    "selectable_from": "first epoch that may be chosen",
    "positional": "the value in parentheses is",
    "per_batch": "drawn anew for each batch",
    "reads_parts": "reads the parts of graphs",
    "needs_pipeline": "only of methods with an encoder",
    "family": "family, for a protocol's defaults",
}
_SILENT: tuple[Any, ...] = ((), [], {}, "", None, False, 0)


def pages(catalog: Catalog) -> dict[str, str]:
    """Address below ``reference/`` -> page, one for each kind that has a built-in component."""
    made = {}
    for kind in KINDS:
        entries = [entry for entry in catalog.of_kind(kind) if entry.plugin == "built-in"]
        if entries:
            made[f"components/{PLURALS[kind]}.md"] = _page(kind, entries)
    return made


def _page(kind: str, entries: list[Entry]) -> str:
    rows = [[f"[`{entry.name}`](#{entry.name})", cell(headline(entry))] for entry in entries]
    parts = [
        f"# {PLURALS[kind].capitalize()}",
        f"`bench list {kind}` and `bench describe {kind}/NAME` show the same on a terminal.",
        table([kind, "what it is, and whose"], rows),
    ]
    return "\n\n".join([*parts, *map(_section, entries)]) + "\n"


def _section(entry: Entry) -> str:
    parts = [f"## {entry.name} {{ #{entry.name} }}", docstring(headline(entry)), docstring(entry.doc)]
    if entry.hparams:
        parts += ["**Hyperparameters**", hyperparameters(entry.hparams)]
    facts = _facts(entry.traits)
    parts += [table(["", ""], facts)] if facts else []
    if deviations(entry):
        parts += ["**Where paper, public code and this code differ**", as_table(entry)]
    parts.append(f"Source: `{entry.module.replace('.', '/')}.py`")
    return "\n\n".join(parts)


def hyperparameters(declared: Mapping[str, HParam]) -> str:
    """A table of hyperparameters with defaults, what is allowed, and what ``tune: default`` tries."""
    rows = [
        [code(each.name), _meaning(each), code(_type(each)), code(_value(each.default)), allowed(each), _search(each)]
        for each in declared.values()
    ]
    return table(["name", "meaning", "type", "default", "allowed", "search space"], rows)


def _type(declared: HParam) -> str:
    return f"{declared.type} or none" if declared.optional else declared.type


def _value(value: Any) -> str:
    """A value as a suite writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value) if value != "" else '""'


def allowed(declared: HParam) -> str:
    """What a value must be beside its type."""
    if declared.choices is not None:
        return ", ".join(code(_value(choice)) for choice in declared.choices)
    low, high = declared.low, declared.high
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"≥ {low:g}" if low is not None else f"≤ {high:g}" if high is not None else ""


def _search(declared: HParam) -> str:
    return ", ".join(code(_value(value)) for value in declared.search or ())


def _meaning(declared: HParam) -> str:
    text = escaped(declared.help)
    if declared.weight_of:
        text += f" (weighs the term `{declared.weight_of}`)"
    if declared.active:
        text += "; matters where " + " and ".join(code(condition_text(*item)) for item in declared.active.items())
    return text


def _facts(traits: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for name, title in _FACTS.items():
        value = traits.get(name)
        if value not in _SILENT:
            items = value if isinstance(value, (list, tuple)) else [value]
            rows.append([title, "yes" if value is True else ", ".join(code(item) for item in items)])
    built_on = [code(f"{each['kind']} {each['name']}") for each in traits.get("upstream", {}).values()]
    return [*rows, ["builds on", ", ".join(built_on)]] if built_on else rows
