"""``bench list`` and ``bench describe``."""

from __future__ import annotations

from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import completion, options
from harness.cli.code import tell_broken, tell_withheld
from harness.errors import UserError, did_you_mean
from harness.hparams import condition_text
from harness.safe_io import visible

if TYPE_CHECKING:
    from harness.registry.catalog import Catalog, Entry


def list_components(
    kind: Annotated[
        str | None, typer.Argument(help="Only this kind, e.g. encoder, or `suites`.", autocompletion=completion.kinds)
    ] = None,
    plugin: options.Plugins = None,
    strict: options.Strict = False,
    json: options.Json = False,
) -> None:
    """List the components that are registered, or the installed suites."""
    from harness.component import KINDS
    from harness.registry.index import load_catalog
    from harness.results.rows import dumps

    if kind == "suites":
        _list_suites(json)
        return
    wanted = None if kind is None else kind.removesuffix("s").replace("analyse", "analysis")
    if wanted is not None and wanted not in KINDS:
        raise UserError(f"no kind is called '{kind}'{did_you_mean(kind or '', KINDS)}; there are: {', '.join(KINDS)}")
    catalog = load_catalog(plugin or (), strict=strict)
    entries = [entry for entry in catalog if wanted in (None, entry.kind)]
    if json:
        found = {"components": [entry.to_json() for entry in entries], "broken": [vars(b) for b in catalog.broken]}
        print(visible(dumps(found)))
        return
    for each in KINDS:
        rows = [entry for entry in entries if entry.kind == each]
        if rows:
            print(f"{each}:")
            width = max(16, *(len(entry.name) for entry in rows))
            for entry in rows:
                origin = "" if entry.plugin == "built-in" else f"  [{entry.plugin}]"
                print(visible(f"  {entry.name:<{width}} {entry.summary}{origin}"))
    _warn(catalog)


def _list_suites(json: bool) -> None:
    from harness.results.rows import dumps
    from harness.suite import suites_folder

    folder = suites_folder()
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.yaml"))
    names = [name for name in names if not name.startswith("common/")]
    print(visible(dumps({"suites": names}) if json else "\n".join(names)))


def _warn(catalog: Catalog) -> None:
    tell_broken(catalog)
    tell_withheld(catalog)


def describe(
    name: Annotated[
        str,
        typer.Argument(help="NAME, or KIND/NAME where two kinds share a name.", autocompletion=completion.components),
    ],
    sets: options.Sets = None,
    data_dir: options.DataDir = None,
    plugin: options.Plugins = None,
    json: options.Json = False,
) -> None:
    """Describe a component: source, hyperparameters, deviations from paper and public code; a dataset's splits."""
    from harness.registry.index import load_catalog
    from harness.results.rows import dumps

    catalog = load_catalog(plugin or ())
    entries = _find(catalog, name)
    described = [
        {**entry.to_json(), **_sources(entry), **_dataset_facts(catalog, entry, sets, data_dir)} for entry in entries
    ]
    if json:
        print(visible(dumps(described[0] if len(described) == 1 else described)), end="")
        return
    print(visible("\n\n".join(_text(entry, facts) for entry, facts in zip(entries, described, strict=True))))


def _find(catalog: Catalog, name: str) -> list[Entry]:
    kind, _, short = name.rpartition("/")
    found = [entry for entry in catalog if entry.name == short and kind in ("", entry.kind)]
    if not found:
        known = sorted({entry.name for entry in catalog})
        raise UserError(f"no component is called '{name}'{did_you_mean(short, known)}; `bench list` shows them")
    return found


def _sources(entry: Entry) -> dict[str, Any]:
    from harness.reference import deviations, headline

    return {"headline": headline(entry), "deviations": deviations(entry)}


def _dataset_facts(catalog: Catalog, entry: Entry, sets: list[str] | None, data_dir: Any) -> dict[str, Any]:
    from dataclasses import asdict

    if entry.kind != "dataset":
        return {}
    from harness.plan.datasets import DatasetFacts
    from harness.store import Store
    from harness.suite.spec import ComponentSpec

    params = options.component_params(entry, sets)
    facts = DatasetFacts(catalog, options.data_folder(data_dir), Store())
    try:
        declared = facts.declare(ComponentSpec("dataset", entry.name, params))
    except UserError as error:
        return {"unavailable": str(error)}
    return {"declaration": asdict(declared)}


_FOR_KIT = ("equals_erm", "foreign_statistics", "listed", "probes", "unused")
"""Traits for the conformance kit, and those that are told beside what they are of."""


def _text(entry: Entry, facts: dict[str, Any]) -> str:
    width = _width()
    lines = [f"{entry.kind} {entry.name}  ({entry.module}, {entry.plugin})", ""]
    lines += [*_wrapped(facts["headline"], width, 0), ""] if facts["headline"] else []
    lines.append(entry.doc.strip())
    if entry.hparams:
        lines += ["", "hyperparameters:"]
    for declared in entry.hparams.values():
        head = f"{declared.name}: {declared.type} = {declared.default!r}  {declared.help}"
        lines += _wrapped(head, width, 2)
        for label, value in (("one of", declared.choices), ("search", declared.search)):
            if value is not None:
                lines += _wrapped(f"{label} {', '.join(map(str, value))}", width, 6)
        if declared.unused:
            lines += _wrapped("has no effect here", width, 6)
        elif declared.active:
            conditions = " and ".join(condition_text(*item) for item in declared.active.items())
            lines += _wrapped(f"matters where {conditions}", width, 6)
    if facts["deviations"]:
        from harness.reference import as_text

        lines += ["", "deviations:", *as_text(facts["deviations"], width)]
    silent: tuple[Any, ...] = ((), [], {}, "", None, False)
    traits = {name: value for name, value in entry.traits.items() if value not in silent and name not in _FOR_KIT}
    if traits:
        lines += ["", "traits:"]
    for name, value in traits.items():
        lines += _wrapped(f"{name}: {value}", width, 2)
    if "unavailable" in facts:
        lines += ["", f"data: {facts['unavailable']}"]
    if "declaration" in facts:
        lines += ["", *_declaration(facts["declaration"])]
    return "\n".join(lines)


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    """One entry as lines of at most ``width`` columns; those after the first stand eight further in."""
    import textwrap

    first, rest = " " * indent, " " * (indent + 8)
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False) or [""]


def _width() -> int:
    """Columns to wrap at: the terminal's, within what can be read."""
    return min(max(get_terminal_size((100, 24)).columns, 60), 120)


def _declaration(declared: dict[str, Any]) -> list[str]:
    task = declared["task"]
    lines = [
        f"task: {task['kind']}, {task['num_classes']} classes, {task['num_tasks']} task(s), {task['metric']}",
        "splits: " + ", ".join(f"{split} ({role})" for split, role in declared["splits"].items()),
        f"validation: {declared['validation']}",
        f"variant: {declared['variant']}",
        f"version: {declared['version'] or 'not stated'}",
        f"node features: {declared['node_features']['kind']} {list(declared['node_features']['sizes'])}",
        f"own environments: {declared['environments'] or 'none'}",
        f"oracle fields: {', '.join(declared['oracle']) or 'none'}",
    ]
    return lines + [f"note: {note}" for note in declared["notes"]]
