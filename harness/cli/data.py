"""``bench data``: which files datasets read, fetching and checking them, and what a dataset holds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import completion, options
from harness.cli.code import tell_broken
from harness.errors import DataError, UserError, did_you_mean

if TYPE_CHECKING:
    from harness.data import Dataset, Download
    from harness.registry.catalog import Catalog, Entry

Name = Annotated[
    str,
    typer.Argument(
        help="A dataset component; `bench data list` shows them.",
        metavar="NAME",
        autocompletion=completion.dataset_components,
    ),
]
MaybeName = Annotated[
    str | None,
    typer.Argument(
        help="A dataset component; all when absent.", metavar="NAME", autocompletion=completion.dataset_components
    ),
]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the dataset; repeatable.")
]


def list_data(sources: options.Sources, json: options.Json = False) -> None:
    """List the datasets: generated, present or missing in the data folder, and how to get what is missing."""
    from harness.cli.data_screens import list_json, show_list
    from harness.downloads.survey import survey
    from harness.registry.index import load_catalog
    from harness.results.rows import dumps

    root = options.data_folder(sources.data_dir)
    catalog = load_catalog(sources.plugin or ())
    states = list(survey(catalog, root))
    if json:
        print(dumps({"folder": str(root), "datasets": [list_json(state, root) for state in states]}), end="")
        return
    show_list(states, root)
    tell_broken(catalog)


def fetch(
    name: Name,
    sources: options.Sources,
    sets: Sets = None,
    offline: Annotated[
        bool, typer.Option("--offline", envvar="BENCH_OFFLINE", help="Use no network: say what to put where.")
    ] = False,
) -> None:
    """Fetch the files of a dataset into the data folder; one that was broken off goes on where it ended."""
    from harness.downloads.files import command

    _, entry, params = _named(name, sets, sources)
    dataset = _make(entry, params)
    root = options.data_folder(sources.data_dir, made=True)
    downloads = dataset.downloads(root)
    if not downloads:
        print(_nothing_to_fetch(dataset, root))
        return
    there = _files_there(dataset, root)
    if there:
        print("".join(f"already there: {path}\n" for path in there), end="")
        return
    words = command("fetch", entry.name, params, root)
    try:
        failures = [text for text in (_fetch_one(download, root, offline) for download in downloads) if text]
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; what has arrived is kept: `{words}` goes on from there") from None
    if failures:
        after = f"afterwards: `{command('verify', entry.name, params, root)}`"
        raise DataError("\n".join([*failures, after]))
    try:
        dataset.files(root)
    except DataError as error:
        raise DataError(f"{error}\nwhat is in {root} is not complete: delete it, then `{words}`") from None


def _files_there(dataset: Dataset, root: Path) -> list[Path]:
    """The dataset's files where all are there, from whichever source, and none is empty."""
    try:
        files = dataset.files(root)
        return files if all(path.stat().st_size for path in files) else []
    except (DataError, OSError):
        return []


def _fetch_one(download: Download, root: Path, offline: bool) -> str:
    """Fetch and say so; the reason where it cannot be had."""
    from functools import partial

    from tqdm import tqdm

    from harness.downloads.fetch import fetch as fetch_download

    try:
        got = fetch_download(download, root, partial(tqdm.write, file=sys.stderr), offline=offline)
    except DataError as error:
        return str(error)
    print(f"{'fetched' if got.fetched else 'already there:'} {got.path}", flush=True)
    for name in got.differing:
        print(
            f"note: {name} is not the copy that this version was tested with; results may differ a little",
            file=sys.stderr,
        )
    return ""


def _nothing_to_fetch(dataset: Dataset, root: Path) -> str:
    from harness.downloads.survey import state_of

    state = state_of(dataset, {}, root)
    if state.state == "own files":
        return f"'{dataset.name}' reads files of your own, so nothing is fetched\n{state.reason}"
    if state.files:
        return f"'{dataset.name}' reads files of your own; they are there"
    return f"'{dataset.name}' is generated: there is nothing to fetch"


def verify(
    sources: options.Sources,
    name: MaybeName = None,
    sets: Sets = None,
    json: options.Json = False,
) -> None:
    """Read the files of a dataset in full and check sizes, digests and headers; without NAME, of all that are there."""
    from harness.cli.data_screens import show_verdict, verdict_json
    from harness.downloads.survey import make_dataset, survey
    from harness.downloads.survey import verify as verify_files
    from harness.registry.index import load_catalog
    from harness.results.rows import dumps

    root = options.data_folder(sources.data_dir)
    if name is None:
        if sets:
            raise UserError("--set goes with the name of a dataset")
        catalog = load_catalog(sources.plugin or ())
        states = [state for state in survey(catalog, root) if state.state == "present"]
        chosen = [(catalog.get("dataset", state.name), dict(state.params)) for state in states]
    else:
        _, entry, params = _named(name, sets, sources)
        chosen = [(entry, params)]
    verdicts = [
        (entry.name, params, verify_files(make_dataset(entry, params), params, root)) for entry, params in chosen
    ]
    if json:
        told = [verdict_json(*verdict) for verdict in verdicts]
        print(
            dumps({"folder": str(root), "sound": not any(v.problems for *_, v in verdicts), "datasets": told}), end=""
        )
    else:
        show_verdict(verdicts, root)
    raise typer.Exit(1 if any(verdict.problems for *_, verdict in verdicts) else 0)


def describe(
    name: Name,
    folders: options.Folders,
    sets: Sets = None,
    json: options.Json = False,
) -> None:
    """Show what a dataset holds: splits, labels, environments, sizes, notes. Builds it first, into the store."""
    from harness.cli.data_screens import show_description
    from harness.plan.datasets import DatasetFacts
    from harness.results.rows import dumps
    from harness.run import dataset
    from harness.store import Store
    from harness.suite.spec import ComponentSpec

    catalog, entry, params = _named(name, sets, folders)
    root, opened = options.data_folder(folders.data_dir), Store(folders.store)
    facts = DatasetFacts(catalog, root, opened)
    spec = ComponentSpec("dataset", entry.name, params)

    def begin() -> None:
        print(f"preparing {name}; the store keeps it …", file=sys.stderr, flush=True)

    artifact, seconds = dataset.prepare(catalog, facts, spec, opened, root, begin)
    told = dataset.describe(facts, spec, artifact)
    told["files"] = [str(path) for path in facts.paths(spec)]
    if json:
        print(dumps(told), end="")
        return
    show_description(told, seconds)


def path(
    sources: options.Sources,
    name: MaybeName = None,
    sets: Sets = None,
    json: options.Json = False,
) -> None:
    """Print the data folder in use, or with NAME the files that the dataset reads, one a line."""
    from harness.plan.datasets import DatasetFacts
    from harness.results.rows import dumps
    from harness.store import Store
    from harness.suite.spec import ComponentSpec

    root = options.data_folder(sources.data_dir)
    if name is None:
        if sets:
            raise UserError("--set goes with the name of a dataset")
        print(dumps({"folder": str(root), "exists": root.is_dir()}) if json else f"{root}\n", end="")
        return
    catalog, entry, params = _named(name, sets, sources)
    facts = DatasetFacts(catalog, root, Store())
    files = [str(file) for file in facts.paths(ComponentSpec("dataset", entry.name, params))]
    if json:
        print(dumps({"folder": str(root), "dataset": name, "settings": params, "files": files}), end="")
        return
    print("".join(f"{file}\n" for file in files), end="")
    if not files:
        print(f"'{name}' is generated: it reads no file", file=sys.stderr)


def _named(name: str, sets: list[str] | None, sources: options.Sources) -> tuple[Catalog, Entry, dict[str, Any]]:
    """The dataset of that name and the given settings."""
    from harness.registry.index import load_catalog

    catalog = load_catalog(sources.plugin or ())
    entry = catalog.find("dataset", name.removeprefix("dataset/"))
    if entry is None:
        raise UserError(_unknown(name, catalog))
    return catalog, entry, options.component_params(entry, sets)


def _unknown(name: str, catalog: Catalog) -> str:
    """No such dataset; a public set of that name is a setting of one."""
    for entry in catalog.of_kind("dataset"):
        for params in entry.traits.get("listed", ()):
            if name.lower() in (str(value).lower() for value in params.values()):
                words = " ".join(f"--set {key}={value}" for key, value in params.items())
                return f"no dataset component is called '{name}'; it is a setting of another: {entry.name} {words}"
    known = catalog.names("dataset")
    return f"no dataset is called '{name}'{did_you_mean(name, known)}; `bench data list` shows them"


def _make(entry: Entry, params: dict[str, Any]) -> Dataset:
    from harness.downloads.survey import make_dataset

    return make_dataset(entry, params)


COMMANDS: options.Commands = {"list": list_data, "fetch": fetch, "verify": verify, "describe": describe, "path": path}
