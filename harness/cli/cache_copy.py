"""``bench cache push`` and ``bench cache pull``: what one store has and another lacks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from harness.cli import completion, options
from harness.cli.cache import cache
from harness.safe_io import visible

if TYPE_CHECKING:
    from harness.run.session import Options

Target = Annotated[
    str, typer.Argument(help="A folder, or a URL that fsspec understands, e.g. s3://bucket/bench.", metavar="TARGET")
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Suites, and ids of runs; everything if absent.",
        metavar="[SUITE|RUN]...",
        autocompletion=completion.suites,
    ),
]


@cache.command()
def push(
    target: Target,
    names: Names = None,
    seeds: options.Seeds = None,
    epochs: options.Epochs = None,
    sets: options.Sets = None,
    datasets: options.Datasets = None,
    methods: options.Methods = None,
    store: options.StoreDir = None,
    data_dir: options.DataDir = None,
    plugin: options.Plugins = None,
    json: options.Json = False,
) -> None:
    """Copy artifacts of this store to another one, if they are not there. Exit code 1 where one was refused."""
    given = options.session_options(
        store=store,
        data_dir=data_dir,
        seeds=seeds,
        epochs=epochs,
        sets=sets,
        datasets=datasets,
        methods=methods,
        plugins=plugin,
    )
    _copy(target, names or (), given, pushing=True, json=json)


@cache.command()
def pull(
    target: Target,
    names: Names = None,
    seeds: options.Seeds = None,
    epochs: options.Epochs = None,
    sets: options.Sets = None,
    datasets: options.Datasets = None,
    methods: options.Methods = None,
    store: options.StoreDir = None,
    data_dir: options.DataDir = None,
    plugin: options.Plugins = None,
    json: options.Json = False,
) -> None:
    """Copy what suites need from another store, if it is there and not here. Exit code 1 where one was refused."""
    given = options.session_options(
        store=store,
        data_dir=data_dir,
        seeds=seeds,
        epochs=epochs,
        sets=sets,
        datasets=datasets,
        methods=methods,
        plugins=plugin,
    )
    _copy(target, names or (), given, pushing=False, json=json)


def _copy(target: str, names: Sequence[str], given: Options, *, pushing: bool, json: bool) -> NoReturn:
    from dataclasses import asdict

    from harness.cli.cache_names import here, there
    from harness.cli.cache_screens import CopyProgress, copied_lines
    from harness.results.rows import dumps
    from harness.store import exchange
    from harness.store.store import Store

    store = Store(given.store)
    other = (exchange.open_target if pushing else exchange.open_source)(target, store)
    verb, where = ("pushed", f"to {target}") if pushing else ("pulled", f"from {target}")
    with closing(CopyProgress(verb)) as progress:
        if pushing:
            done = exchange.push(store, other, *here(names, store, given), progress)
        else:
            done = exchange.pull(store, other, *there(names, other, given), progress)
    if json:
        print(dumps(asdict(done)), end="")
    else:
        print(visible("\n".join(copied_lines(done, verb, where))))
    raise typer.Exit(1 if done.refused else 0)
