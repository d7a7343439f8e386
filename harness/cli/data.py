"""``bench data``: list the files of datasets, fetch and check them, describe a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.completion import complete_dataset_components
from harness.cli.options import Commands, Folders, Json, Sources, component
from harness.cli.output import answer, counted, print_lines, say, table, tell_plugins
from harness.errors import DataError, UserError
from harness.safe_io import size_text

if TYPE_CHECKING:
    from harness.data import Dataset
    from harness.downloads.files import DataState, Verdict
    from harness.suite.spec import ComponentSpec

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
_COMPARED = {
    "promised": "equal to what the source promises",
    "tested": "equal to the copy this code was tested with",
    "": "readable, no digest known",
}


def settings_text(params: Mapping[str, Any]) -> str:
    """``measure=ec50 domain=assay``."""
    return " ".join(f"{name}={value}" for name, value in params.items())


def list_data(sources: Sources, json: Json = False) -> None:
    """List the datasets, and how to get those that are missing. Others are generated, or in the data folder."""
    from harness.downloads.files import survey

    root = sources.data_folder()
    catalog = sources.catalog()
    states = list(survey(catalog, root))
    data = {"folder": str(root), "datasets": [_state_json(state, root) for state in states]}
    answer(json, data, _listed(states, root))
    if not json:
        tell_plugins(catalog)


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


def _listed(states: list[DataState], root: Path) -> Iterator[str]:
    from harness.downloads.files import command

    yield f"data folder: {root}{'' if root.is_dir() else '  (not there yet; fetching makes it)'}"
    yield ""
    rows = []
    for state in states:
        size = size_text(state.size) if state.files else ""
        rows.append((state.name, settings_text(state.params), state.state, size, _where(state, root)))
    yield from table(("dataset", "settings", "data", "size", "where"), rows, {3})
    missing = sorted((state for state in states if state.state == "missing"), key=lambda state: not state.fetchable)
    if missing:
        yield ""
        yield f"to get what is missing, for example: `{command('fetch', missing[0].name, missing[0].params, root)}`"


def _where(state: DataState, root: Path) -> str:
    if state.files:
        common = os.path.commonpath(state.files)
        return os.path.relpath(common, root) if Path(common).is_relative_to(root) else common
    if state.state == "missing":
        return "can be fetched" if state.fetchable else "to be put there by hand"
    return "named by its settings" if state.state == "own files" else state.reason.partition("\n")[0]


def fetch(
    name: Name,
    sources: Sources,
    sets: Sets = None,
    offline: Annotated[
        bool, typer.Option("--offline", envvar="BENCH_OFFLINE", help="Use no network: say what to put where.")
    ] = False,
) -> None:
    """Fetch the files of a dataset into the data folder. An interrupted fetch continues where it ended."""
    from harness.downloads.fetch import fetch as fetch_download
    from harness.downloads.files import command

    spec, dataset = _named(name, sets, sources)
    root = sources.data_folder(made=True)
    downloads = dataset.downloads(root)
    if not downloads:
        print_lines([f"'{name}' is generated, or reads files of your own: there is nothing to fetch"])
        return
    there: list[Path] = []
    with suppress(DataError, OSError):
        files = list(dataset.files(root))
        there = files if all(path.stat().st_size for path in files) else []
    if there:
        print_lines(f"already there: {path}" for path in there)
        return
    failures = []
    try:
        for download in downloads:
            try:
                fetched = fetch_download(download, root, say, offline=offline)
            except DataError as error:
                failures.append(str(error))
            else:
                print_lines([f"{'fetched' if fetched else 'already there:'} {root / download.path}"])
    except KeyboardInterrupt:
        words = command("fetch", spec.name, spec.params, root)
        raise KeyboardInterrupt(f"interrupted; what has arrived is kept: `{words}` goes on from there") from None
    if failures:
        after = f"afterwards: `{command('verify', spec.name, spec.params, root)}`"
        raise DataError("\n".join([*failures, after]))
    dataset.files(root)  # raises an error if they are not what the dataset reads


def verify(sources: Sources, name: MaybeName = None, sets: Sets = None, json: Json = False) -> None:
    """Read a dataset's files and check sizes, digests and headers. Without NAME those of all that are there."""
    from harness.downloads.files import make_dataset, survey
    from harness.downloads.files import verify as verify_files

    root = sources.data_folder()
    if name is None:
        _refuse_settings(sets)
        catalog = sources.catalog()
        states = [state for state in survey(catalog, root) if state.state == "present"]
        chosen = [(state.params, make_dataset(catalog.get("dataset", state.name), state.params)) for state in states]
    else:
        spec, dataset = _named(name, sets, sources)
        chosen = [(spec.params, dataset)]
    verdicts = [(dataset.name, params, verify_files(dataset, params, root)) for params, dataset in chosen]
    sound = not any(verdict.problems for *_, verdict in verdicts)
    datasets = [
        {
            "dataset": dataset,
            "settings": dict(params),
            "files": [{"path": path, "compared": with_what or None} for path, with_what in verdict.files.items()],
            "problems": verdict.problems,
        }
        for dataset, params, verdict in verdicts
    ]
    lines = [line for item in verdicts for line in _verdict(*item)]
    nothing = [f"no data files in {root}: `bench data list` says how to get them"]
    answer(json, {"folder": str(root), "sound": sound, "datasets": datasets}, lines or nothing)
    raise typer.Exit(0 if sound else 1)


def _verdict(name: str, params: Mapping[str, Any], verdict: Verdict) -> Iterator[str]:
    title = f"{name} {settings_text(params)}".rstrip()
    if verdict.problems:
        yield f"{title}: {counted(len(verdict.problems), 'problem')}"
        yield from (f"  {line}" for problem in verdict.problems for line in problem.splitlines())
    elif verdict.files:
        compared = ", ".join(_COMPARED[kind] for kind in sorted(set(verdict.files.values())))
        yield f"{title}: {counted(len(verdict.files), 'file')} sound ({compared})"
    else:
        yield f"{title}: generated, reads no file"


def describe(name: Name, folders: Folders, sets: Sets = None, json: Json = False) -> None:
    """Describe a dataset: splits, labels, environments, sizes, notes. It is built into the store first."""
    from harness.plan.datasets import Declarations
    from harness.run import dataset

    catalog, root, store = folders.catalog(), folders.data_folder(), folders.open_store()
    spec = component(catalog, "dataset", name, sets)
    facts = Declarations(catalog, root, store)
    artifact = dataset.prepare(
        catalog, facts, spec, store, root, lambda: say(f"preparing {name}; the store keeps it …")
    )
    files = [str(path) for path in facts.paths(spec)]
    answer(json, {**dataset.describe(facts, spec, artifact), "files": files})


def path(sources: Sources, name: MaybeName = None, sets: Sets = None, json: Json = False) -> None:
    """Print the data folder in use. With NAME the files that the dataset reads, one a line."""
    from harness.plan.datasets import Declarations
    from harness.store import Store

    root = sources.data_folder()
    if name is None:
        _refuse_settings(sets)
        answer(json, {"folder": str(root), "exists": root.is_dir()}, [str(root)])
        return
    catalog = sources.catalog()
    spec = component(catalog, "dataset", name, sets)
    files = list(map(str, Declarations(catalog, root, Store()).paths(spec)))
    answer(json, {"folder": str(root), "dataset": name, "settings": dict(spec.params), "files": files}, files)
    if not files:
        say(f"'{name}' is generated: it reads no file")


def _refuse_settings(sets: list[str] | None) -> None:
    if sets:
        raise UserError("--set goes with the name of a dataset")


def _named(name: str, sets: list[str] | None, sources: Sources) -> tuple[ComponentSpec, Dataset]:
    from harness.downloads.files import make_dataset

    catalog = sources.catalog()
    spec = component(catalog, "dataset", name, sets)
    return spec, make_dataset(catalog.get("dataset", spec.name), spec.params)


COMMANDS: Commands = {"list": list_data, "fetch": fetch, "verify": verify, "describe": describe, "path": path}
