"""``bench cache push`` and ``bench cache pull``: what one store has and another lacks."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion, options
from harness.cli.cache import cache
from harness.untrusted import visible

if TYPE_CHECKING:
    from harness.storage.exchange import Copied

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
    from harness.cli.cache_names import here
    from harness.cli.cache_screens import CopyProgress
    from harness.storage.exchange import open_target
    from harness.storage.exchange import push as copy
    from harness.store import Store

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
    opened = Store(store)
    other = open_target(target, opened)
    keys, runs = here(names or (), opened, given)
    with closing(CopyProgress("pushed")) as progress:
        done = copy(opened, other, keys, runs, progress)
    _end(done, "pushed", f"to {target}", json)


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
    from harness.cli.cache_names import there
    from harness.cli.cache_screens import CopyProgress
    from harness.storage.exchange import open_target
    from harness.storage.exchange import pull as copy
    from harness.store import Store

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
    opened = Store(store)
    other = open_target(target, opened)
    keys, runs = there(names or (), other, given)
    with closing(CopyProgress("pulled")) as progress:
        done = copy(opened, other, keys, runs, progress)
    _end(done, "pulled", f"from {target}", json)


def _end(done: Copied, verb: str, where: str, json: bool) -> None:
    from dataclasses import asdict

    from harness.cli.cache_screens import copied_lines
    from harness.results import dumps

    if json:
        print(dumps(asdict(done)), end="")
    else:
        print(visible("\n".join(copied_lines(done, verb, where))))
    raise typer.Exit(1 if done.refused else 0)
