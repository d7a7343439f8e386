"""``bench list``, ``bench describe`` and ``bench doctor``."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.completion import complete_components, complete_kinds
from harness.cli.notices import tell_broken, tell_withheld
from harness.cli.options import Folders, Json, Plugins, Sets, Sources, Strict, component_params
from harness.cli.output import print_json
from harness.component import KINDS, require_kind
from harness.errors import BenchError, UserError, did_you_mean
from harness.hparams import condition_text
from harness.safe_io import visible

if TYPE_CHECKING:
    from harness.registry.catalog import Catalog, Entry

_EMPTY: tuple[Any, ...] = ((), [], {}, "", None, False)
_FOR_KIT = ("equals_erm", "foreign_statistics", "listed", "probes", "unused")
"""Traits for the conformance kit, and those that are shown beside what they belong to."""


def list_components(
    kind: Annotated[
        str | None, typer.Argument(help="Only this kind, e.g. encoder, or `suites`.", autocompletion=complete_kinds)
    ] = None,
    plugin: Plugins = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """List the components that are registered, or the installed suites."""
    from harness.registry.index import load_catalog

    if kind == "suites":
        _list_suites(json)
        return
    if kind is not None:
        kind = require_kind(kind.removesuffix("s").replace("analyse", "analysis"))
    catalog = load_catalog(plugin or (), strict=strict)
    entries = [entry for entry in catalog if kind in (None, entry.kind)]
    if json:
        broken = [vars(plugin) for plugin in catalog.broken]
        print_json({"components": [entry.to_json() for entry in entries], "broken": broken})
        return
    for name in KINDS:
        rows = [entry for entry in entries if entry.kind == name]
        if rows:
            print(f"{name}:")
            width = max(16, *(len(entry.name) for entry in rows))
            for entry in rows:
                origin = "" if entry.plugin == "built-in" else f"  [{entry.plugin}]"
                print(visible(f"  {entry.name:<{width}} {entry.summary}{origin}"))
    tell_broken(catalog)
    tell_withheld(catalog)


def _list_suites(json: bool) -> None:
    from harness.suite.files import installed_suites

    names = [f"{name}.yaml" for name in installed_suites()]
    if json:
        print_json({"suites": names})
    else:
        print("\n".join(names))


def describe(
    name: Annotated[
        str,
        typer.Argument(help="NAME, or KIND/NAME where two kinds share a name.", autocompletion=complete_components),
    ],
    sources: Sources,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Describe a component: source, hyperparameters, deviations from paper and public code; a dataset's splits."""
    from harness.reference import deviations, headline

    catalog = sources.catalog()
    entries = _find(catalog, name)
    described = []
    for entry in entries:
        texts = {"headline": headline(entry), "deviations": deviations(entry)}
        described.append({**entry.to_json(), **texts, **_dataset_facts(catalog, entry, sets, sources)})
    if json:
        print_json(described[0] if len(described) == 1 else described)
        return
    print(visible("\n\n".join(_text(entry, facts) for entry, facts in zip(entries, described, strict=True))))


def _find(catalog: Catalog, name: str) -> list[Entry]:
    kind, _, short = name.rpartition("/")
    entries = [entry for entry in catalog if entry.name == short and kind in ("", entry.kind)]
    if not entries:
        known = sorted({entry.name for entry in catalog})
        raise UserError(f"no component is called '{name}'{did_you_mean(short, known)}; `bench list` shows them")
    return entries


def _dataset_facts(catalog: Catalog, entry: Entry, sets: list[str] | None, sources: Sources) -> dict[str, Any]:
    if entry.kind != "dataset":
        return {}
    from harness.plan.datasets import Declarations
    from harness.store import Store
    from harness.suite.spec import ComponentSpec

    params = component_params(entry, sets)
    facts = Declarations(catalog, sources.data_folder(), Store())
    try:
        declared = facts.declare(ComponentSpec("dataset", entry.name, params))
    except UserError as error:
        return {"unavailable": str(error)}
    return {"declaration": asdict(declared)}


def _text(entry: Entry, facts: dict[str, Any]) -> str:
    width = min(max(get_terminal_size((100, 24)).columns, 60), 120)
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
    traits = {name: value for name, value in entry.traits.items() if value not in _EMPTY and name not in _FOR_KIT}
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
    """Wrap an entry to ``width`` columns; lines after the first are indented by eight more."""
    first, rest = " " * indent, " " * (indent + 8)
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False) or [""]


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


def doctor(
    folders: Folders,
    json: Json = False,
) -> None:
    """Show versions, devices, plugins, the data found, the store and the state of PyGCL."""

    facts = examine(folders)
    if json:
        print_json(facts)
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for key, item in value.items():
                print(f"  {key}: {item}")
        elif isinstance(value, list):
            print(f"{name}: {', '.join(map(str, value)) or 'none'}")
        else:
            print(f"{name}: {value}")


def examine(folders: Folders) -> dict[str, Any]:
    """Return all that ``bench doctor`` shows, as JSON."""
    from harness.engine.provenance import provenance
    from harness.pygcl import pygcl_state
    from harness.store import data_root, index_root

    about = provenance()
    facts: dict[str, Any] = {
        "versions": about["versions"],
        "machine": {name: about[name] for name in ("platform", "cpu", "cores")},
        "devices": _devices(),
        "PyGCL": pygcl_state(),
    }
    try:
        catalog = folders.catalog()
        facts["components"] = len(list(catalog))
        facts["broken plugins"] = [f"{item.plugin}: {item.reason}" for item in catalog.broken]
    except BenchError as error:
        facts["broken plugins"] = [str(error)]
    try:
        opened = folders.open_store()
        opened.require_writable()
        facts["store"] = str(opened.root)
    except BenchError as error:
        facts["store"] = str(error)
    facts["index"] = str(index_root())
    folder = folders.data_dir or data_root()
    facts["data folder"] = str(folder)
    facts["data found"] = sorted(p.name for p in folder.iterdir() if p.name[0] != ".") if folder.is_dir() else []
    return facts


def _devices() -> list[str]:
    from harness.engine.devices import survey_devices

    try:
        return survey_devices()
    except (ImportError, OSError) as error:
        return [f"torch cannot be imported: {error}"]
    except RuntimeError as error:
        return [f"torch cannot look at its devices: {error}"]
