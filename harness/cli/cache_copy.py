"""``bench cache push`` and ``bench cache pull``: what one store has and another lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from harness.cli import completion, options
from harness.cli.cache import cache, keys_of_suites
from harness.errors import UserError
from harness.safe_io import size_text, visible

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


def _command(*, pushing: bool) -> Callable[..., None]:
    def copy(
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
        from dataclasses import asdict

        from harness.cli.words import counted
        from harness.results.rows import dumps
        from harness.store.exchange import Remote, pull, push
        from harness.store.store import Store

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
        remote = Remote(target, opened, exists=not pushing)
        known = {path.name for path in opened.runs.glob("*")} if pushing else remote.runs()
        runs = [name for name in names or known if name in known]
        try:
            keys = keys_of_suites([name for name in names if name not in known], given) if names else None
        except UserError as error:
            where = "this store" if pushing else target
            raise UserError(f"{error}\n(a run of {where} may be named too; by its id)") from None
        copied = (push if pushing else pull)(opened, remote, keys, sorted(runs))
        if json:
            print(dumps(asdict(copied)), end="")
            raise typer.Exit(1 if copied.refused else 0)
        for what, reason in copied.refused.items():
            print(visible(f"{what}: refused: {reason}"))
        with_runs = f" and {counted(copied.runs, 'run')}" if copied.runs else ""
        there = f"; {counted(copied.present, 'artifact')} already there" if copied.present else ""
        count = f"{counted(copied.artifacts, 'artifact')}{with_runs}, {size_text(copied.bytes)}"
        print(visible(f"pushed {count} to {target}{there}" if pushing else f"pulled {count} from {target}{there}"))
        raise typer.Exit(1 if copied.refused else 0)

    return copy


cache.command("push", help="Copy artifacts of this store to another one. Exit code 1 where one was refused.")(
    _command(pushing=True)
)
cache.command("pull", help="Copy what suites need from another store. Exit code 1 where one was refused.")(
    _command(pushing=False)
)
