"""``bench list``, ``bench describe`` and ``bench doctor``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.completion import complete_components
from harness.cli.options import Folders, Json, Plugins, Strict
from harness.cli.output import answer, tell_plugins
from harness.component import BUILT_IN, KINDS, require_kind
from harness.errors import BenchError, UserError, did_you_mean
from harness.hparams import condition_text

if TYPE_CHECKING:
    from harness.hparams import HParam
    from harness.reference import Deviation
    from harness.registry.catalog import Catalog, Entry


def list_components(
    kind: Annotated[str | None, typer.Argument(help="Only this kind, e.g. encoder; or `suites`, or `bundles`.")] = None,
    plugin: Plugins = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """List the registered components, the suites or the bundles. Components have their method and paper beside them."""
    from harness.reference import PLURALS
    from harness.registry.index import load_catalog
    from harness.suite.files import titles

    if kind in ("suites", "bundles"):
        found = titles(kind)
        rows = [{"name": name, "title": title} for name, title in found.items()]
        answer(json, {kind: rows}, _aligned(found.items()))
        return
    if kind is not None:
        singular = next((one for one, plural in PLURALS.items() if plural == kind), kind)
        kind = require_kind(singular, ("suites", "bundles"))
    catalog = load_catalog(plugin or (), strict=strict)
    entries = [entry for entry in catalog if kind in (None, entry.kind)]
    data = {"components": [entry.to_json() for entry in entries], "broken": list(map(vars, catalog.broken))}
    answer(json, data, _listed(entries))
    if not json:
        tell_plugins(catalog)


def _listed(entries: Iterable[Entry]) -> Iterator[str]:
    from harness.reference import headline

    for kind in KINDS:
        rows = [entry for entry in entries if entry.kind == kind]
        if rows:
            yield f"{kind}:"
        origins = ["" if entry.plugin == BUILT_IN else f"  [{entry.plugin}]" for entry in rows]
        about = [(headline(entry) or entry.summary) + origin for entry, origin in zip(rows, origins, strict=True)]
        yield from _aligned(zip((f"  {entry.name}" for entry in rows), about, strict=True))


def _aligned(rows: Iterable[tuple[str, str]]) -> list[str]:
    lines = list(rows)
    width = max((len(name) for name, _ in lines), default=0)
    return [f"{name:<{width}}  {about}" for name, about in lines]


def describe(
    name: Annotated[
        str,
        typer.Argument(
            help="NAME, KIND/NAME where two kinds share a name, or a bundle.", autocompletion=complete_components
        ),
    ],
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Describe a component, or show a bundle. Deviations from paper and public code are told."""
    from harness.reference import deviations, headline
    from harness.registry.index import load_catalog
    from harness.suite.files import shipped

    if name in (bundles := shipped("bundles")):
        text = bundles[name].read_text(encoding="utf-8")
        answer(json, {"bundle": name, "text": text}, text.splitlines())
        return

    described: list[dict[str, Any]] = []
    lines: list[str] = []
    for entry in _find(load_catalog(plugin or ()), name):
        first, rows = headline(entry), deviations(entry)
        described.append({**entry.to_json(), "headline": first, "deviations": rows})
        lines += [*_described(entry, first, rows), ""]
    answer(json, described[0] if len(described) == 1 else described, lines[:-1])


def _find(catalog: Catalog, name: str) -> list[Entry]:
    from harness.suite.files import shipped

    kind, _, short = name.rpartition("/")
    entries = [entry for entry in catalog if entry.name == short and kind in ("", entry.kind)]
    if not entries:
        known = sorted({entry.name for entry in catalog} | {*shipped("bundles")})
        hint = did_you_mean(short, known) or did_you_mean(name, known)
        raise UserError(f"no component is called '{name}'{hint}; `bench list` shows them")
    return entries


def _described(entry: Entry, headline: str, deviations: list[Deviation]) -> Iterator[str]:
    from harness.reference import as_text, traits

    yield f"{entry.kind} {entry.name}  ({entry.module}, {entry.plugin})"
    yield from ("", headline, "", entry.doc.strip())
    if entry.hparams:
        yield from ("", "hyperparameters:")
    for declared in entry.hparams.values():
        yield from _hyperparameter(declared)
    if deviations:
        yield from ("", "deviations:", *as_text(deviations))
    if found := traits(entry):
        yield from ("", "traits:", *(f"  {name}: {value}" for name, value in found.items()))


def _hyperparameter(declared: HParam) -> Iterator[str]:
    yield f"  {declared.name}: {declared.type} = {declared.default!r}  {declared.help}"
    for label, values in (("one of", declared.choices), ("search", declared.search)):
        if values is not None:
            yield f"      {label} {', '.join(map(str, values))}"
    if declared.unused:
        yield "      has no effect here"
    elif declared.active:
        yield f"      matters where {' and '.join(condition_text(*item) for item in declared.active.items())}"


def doctor(folders: Folders, json: Json = False) -> None:
    """Show versions, extras, devices, plugins, data and the store. And whether PyGCL can be imported."""
    from harness.downloads.files import survey
    from harness.engine.devices import survey_devices
    from harness.engine.provenance import extras, machine, versions
    from harness.registry.pygcl import pygcl_state
    from harness.store import data_root, index_root

    facts: dict[str, Any] = {"versions": versions(), "extras": extras(), "machine": machine()}
    folder = folders.data_dir or data_root()
    try:
        facts["devices"] = survey_devices()
    except (ImportError, OSError, RuntimeError) as error:
        facts["devices"] = [f"torch cannot look at its devices: {error}"]
    facts["PyGCL"] = pygcl_state()
    try:
        catalog = folders.catalog()
        facts["components"] = len(list(catalog))
        states = [state for state in survey(catalog, folder) if state.state != "own files"]  # a suite names those
        facts["datasets found"] = sorted({state.name for state in states if state.state in ("present", "generated")})
        facts["datasets missing"] = sorted({state.name for state in states} - {*facts["datasets found"]})
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
    facts["data folder"] = str(folder)
    answer(json, facts)
