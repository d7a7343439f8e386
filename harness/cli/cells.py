"""``bench debug`` and ``bench reproduce``: one cell again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.completion import complete_cells
from harness.cli.options import CellOrSuite, Config, Device, Folders, Json, SuiteOptions, Workers, one_device
from harness.cli.output import answer, print_lines, say
from harness.cli.progress import show_progress

if TYPE_CHECKING:
    from harness.run.debug import Debugged
    from harness.run.find import OpenedCell


def debug(
    cell: CellOrSuite,
    chosen: SuiteOptions,
    folders: Folders,
    config: Config = None,
    pdb: Annotated[bool, typer.Option("--pdb", help="Enter the debugger where an exception was raised.")] = False,
    anomaly: Annotated[
        bool, typer.Option("--anomaly", help="Let torch name the operation whose gradient is not a number. Slow.")
    ] = False,
    again: Annotated[
        list[str] | None,
        typer.Option("--again", metavar="STAGE", help="Run stored stages of this kind again, e.g. encode; repeatable."),
    ] = None,
    cached: Annotated[bool, typer.Option("--cached", help="Take the training from the store, if it is there.")] = False,
    keep_upstream: Annotated[
        bool, typer.Option("--keep-upstream", help="Store the stages before the training, as a run would.")
    ] = False,
    device: Device = "cpu",
) -> None:
    """Run one cell in this process, for tracebacks and breakpoints. Its result is not stored."""
    from harness.run.debug import ALWAYS, check_kinds
    from harness.run.debug import debug as run_here
    from harness.run.find import open_cell

    check_kinds(again or ())
    chosen_device = one_device(device)
    opened = open_cell(cell, folders.session(chosen), config)
    introduce(opened)
    kept = "the training and its result are not stored" if keep_upstream else "nothing that is run here is stored"
    say(f"a run for debugging: {kept}")
    anew = {*(again or ()), *(() if cached else ALWAYS)}
    with ExitStack() as stack:
        if anomaly:
            import torch

            stack.enter_context(torch.autograd.set_detect_anomaly(True, check_nan=True))
        try:
            done = run_here(opened, say, again=anew, keep_upstream=keep_upstream, device=chosen_device)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may call sys.exit
            raise typer.Exit(_failed(error, pdb)) from None
    print_lines(_debugged(done))


def introduce(opened: OpenedCell) -> None:
    """Name the cell that was chosen, and how to choose another, on the error stream."""
    say(f"cell {opened.cell.id}: {opened.cell.name}")
    if opened.fitting > 1:
        say(f"the first of {opened.fitting} cells; --datasets, --methods, --seeds and --config choose another")


def _failed(error: BaseException, enter: bool) -> int:
    import pdb
    import traceback
    from bdb import BdbQuit

    if isinstance(error, BdbQuit):
        say("left the debugger; the cell was not finished")
        return 1
    traceback.print_exception(error)
    if enter:
        pdb.post_mortem(error.__traceback__)
    return 1


def _debugged(done: Debugged) -> Iterator[str]:
    for row in done.scores:
        value = row["status"] if row["value"] is None else f"{100 * row['value']:.2f}"
        yield f"{row['metric']} on {row['split']}, {row['rule']}: {value}"
    if done.stored is None:
        yield "the store has no result of this cell to compare with"
    else:
        yield f"{'equal to' if done.scores == done.stored else 'differs from'} the stored result"


def reproduce(
    cell: Annotated[
        str,
        typer.Argument(
            help="Id of a cell, as `bench export` and HTML reports show it.",
            metavar="CELL",
            autocompletion=complete_cells,
        ),
    ],
    folders: Folders,
    workers: Workers,
    json: Json = False,
) -> None:
    """Run one cell again from nothing and compare it bit for bit. The store is not changed."""
    from dataclasses import asdict

    from harness.run.reproduce import reproduce as run_again

    with ExitStack() as stack:
        result = run_again(
            cell,
            folders.session(),
            workers.options(),
            lambda session: stack.enter_context(show_progress(session, quiet=json)),
        )
    data = {**asdict(result), "cell": result.cell.id, "name": result.cell.name, "identical": result.identical}
    answer(json, data)
    raise typer.Exit(0 if result.identical else 1)
