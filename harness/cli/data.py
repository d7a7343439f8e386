"""``bench data``: list the files of datasets, fetch and check them, describe a dataset."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.completion import complete_dataset_components
from harness.cli.notices import tell_broken
from harness.cli.options import Commands, Folders, Json, Sources, component_params
from harness.cli.output import print_json
from harness.errors import DataError, UserError, did_you_mean
from harness.safe_io import visible

if TYPE_CHECKING:
    from harness.data import Dataset, Download
    from harness.downloads.survey import DataState
    from harness.registry.catalog import Catalog, Entry

Name = Annotated[
    str,
    typer.Argument(
        help="A dataset component; `bench data list` shows them.",
        metavar="NAME",
        autocompletion=complete_dataset_components,
    ),
]
MaybeName = Annotated[
    str | None,
    typer.Argument(
        help="A dataset component; all when absent.", metavar="NAME", autocompletion=complete_dataset_components
    ),
]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the dataset; repeatable.")
]


def list_data(sources: Sources, json: Json = False) -> None:
    """List the datasets: generated, present or missing in the data folder, and how to get what is missing."""
    from harness.cli.data_tables import show_list
    from harness.downloads.survey import survey

    root = sources.data_folder()
    catalog = sources.catalog()
    states = list(survey(catalog, root))
    if json:
        print_json({"folder": str(root), "datasets": [_state_json(state, root) for state in states]})
        return
    show_list(states, root)
    tell_broken(catalog)


def _state_json(state: DataState, root: Path) -> dict[str, Any]:
    downloads = [
        {"path": str(root / item.path), "url": item.url, "how": item.how, "bytes": item.size, "sha256": item.sha256}
        for item in state.downloads
    ]
    return {
        "dataset": state.name,
        "settings": dict(state.params),
        "state": state.state,
        "bytes": state.size,
        "files": [str(path) for path in state.files],
        "downloads": downloads,
        "reason": state.reason,
    }


def fetch(
    name: Name,
    sources: Sources,
    sets: Sets = None,
    offline: Annotated[
        bool, typer.Option("--offline", envvar="BENCH_OFFLINE", help="Use no network: say what to put where.")
    ] = False,
) -> None:
    """Fetch the files of a dataset into the data folder; an interrupted fetch continues where it ended."""
    from harness.downloads.files import command
    from harness.downloads.survey import make_dataset

    _, entry, params = _named(name, sets, sources)
    dataset = make_dataset(entry, params)
    root = sources.data_folder(made=True)
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
    """Return the dataset's files if all are there and none is empty, from whichever source."""
    try:
        files = dataset.files(root)
        return files if all(path.stat().st_size for path in files) else []
    except (DataError, OSError):
        return []


def _fetch_one(download: Download, root: Path, offline: bool) -> str:
    """Fetch one file and say so; return the reason if it cannot be had."""
    from tqdm import tqdm

    from harness.downloads.fetch import fetch as fetch_download

    def report(text: str) -> None:
        tqdm.write(visible(text), file=sys.stderr)

    try:
        fetched = fetch_download(download, root, report, offline=offline)
    except DataError as error:
        return str(error)
    print(f"{'fetched' if fetched else 'already there:'} {root / download.path}", flush=True)
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
    sources: Sources,
    name: MaybeName = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Read the files of a dataset in full and check sizes, digests and headers; without NAME, of all that are there."""
    from harness.cli.data_tables import show_verdict
    from harness.cli.output import show_text
    from harness.downloads.survey import make_dataset, survey
    from harness.downloads.survey import verify as verify_files

    root = sources.data_folder()
    if name is None:
        _refuse_settings(sets)
        catalog = sources.catalog()
        states = [state for state in survey(catalog, root) if state.state == "present"]
        chosen = [(catalog.get("dataset", state.name), dict(state.params)) for state in states]
    else:
        _, entry, params = _named(name, sets, sources)
        chosen = [(entry, params)]
    verdicts = [
        (entry.name, params, verify_files(make_dataset(entry, params), params, root)) for entry, params in chosen
    ]
    sound = not any(verdict.problems for *_, verdict in verdicts)
    if json:
        datasets = [
            {
                "dataset": dataset,
                "settings": params,
                "files": [{"path": path, "compared": with_what or None} for path, with_what in verdict.files.items()],
                "problems": verdict.problems,
            }
            for dataset, params, verdict in verdicts
        ]
        print_json({"folder": str(root), "sound": sound, "datasets": datasets})
    elif not verdicts:
        show_text(f"no data files in {root}: `bench data list` says how to get them")
    else:
        for item in verdicts:
            show_verdict(*item)
    raise typer.Exit(0 if sound else 1)


def describe(name: Name, folders: Folders, sets: Sets = None, json: Json = False) -> None:
    """Describe a dataset: splits, labels, environments, sizes, notes. It is built into the store first."""
    from harness.cli.data_tables import show_description
    from harness.plan.datasets import Declarations
    from harness.run import dataset
    from harness.suite.spec import ComponentSpec

    catalog, entry, params = _named(name, sets, folders)
    root, store = folders.data_folder(), folders.open_store()
    facts, spec = Declarations(catalog, root, store), ComponentSpec("dataset", entry.name, params)

    def begin() -> None:
        print(f"preparing {name}; the store keeps it …", file=sys.stderr, flush=True)

    artifact, seconds = dataset.prepare(catalog, facts, spec, store, root, begin)
    about = {**dataset.describe(facts, spec, artifact), "files": [str(path) for path in facts.paths(spec)]}
    if json:
        print_json(about)
    else:
        show_description(about, seconds)


def path(
    sources: Sources,
    name: MaybeName = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Print the data folder in use, or with NAME the files that the dataset reads, one a line."""
    from harness.plan.datasets import Declarations
    from harness.store import Store
    from harness.suite.spec import ComponentSpec

    root = sources.data_folder()
    if name is None:
        _refuse_settings(sets)
        if json:
            print_json({"folder": str(root), "exists": root.is_dir()})
        else:
            print(root)
        return
    catalog, entry, params = _named(name, sets, sources)
    facts = Declarations(catalog, root, Store())
    files = [str(file) for file in facts.paths(ComponentSpec("dataset", entry.name, params))]
    if json:
        print_json({"folder": str(root), "dataset": name, "settings": params, "files": files})
        return
    print("".join(f"{file}\n" for file in files), end="")
    if not files:
        print(f"'{name}' is generated: it reads no file", file=sys.stderr)


def _refuse_settings(sets: list[str] | None) -> None:
    if sets:
        raise UserError("--set goes with the name of a dataset")


def _named(name: str, sets: list[str] | None, sources: Sources) -> tuple[Catalog, Entry, dict[str, Any]]:
    """Return the catalog, the dataset of that name, and its settings."""

    catalog = sources.catalog()
    entry = catalog.find("dataset", name.removeprefix("dataset/"))
    if entry is None:
        raise UserError(_unknown(name, catalog))
    return catalog, entry, component_params(entry, sets)


def _unknown(name: str, catalog: Catalog) -> str:
    """Return the message for an unknown dataset; a public set of that name is a setting of another."""
    for entry in catalog.of_kind("dataset"):
        for params in entry.traits.get("listed", ()):
            if name.lower() in (str(value).lower() for value in params.values()):
                words = " ".join(f"--set {key}={value}" for key, value in params.items())
                return f"no dataset component is called '{name}'; it is a setting of another: {entry.name} {words}"
    known = catalog.names("dataset")
    return f"no dataset is called '{name}'{did_you_mean(name, known)}; `bench data list` shows them"


COMMANDS: Commands = {"list": list_data, "fetch": fetch, "verify": verify, "describe": describe, "path": path}
