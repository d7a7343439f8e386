"""``bench debug``."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion, options

if TYPE_CHECKING:
    from harness.run.debug import Debugged
    from harness.run.find import OpenedCell


def debug(
    cell: options.CellOrSuite,
    chosen: options.SuiteOptions,
    folders: options.Folders,
    config: options.Config = None,
    pdb: Annotated[bool, typer.Option("--pdb", help="Enter the debugger where an exception was raised.")] = False,
    anomaly: Annotated[
        bool, typer.Option("--anomaly", help="Let torch name the operation whose gradient is not a number. Slow.")
    ] = False,
    again: Annotated[
        list[str] | None,
        typer.Option(
            "--again",
            metavar="STAGE",
            help="Run stored stages of this kind again, e.g. encode; repeatable.",
            autocompletion=completion.one_of("prepare", "encode", "quantify", "annotate"),
        ),
    ] = None,
    cached: Annotated[bool, typer.Option("--cached", help="Take the training from the store, if it is there.")] = False,
    keep_upstream: Annotated[
        bool, typer.Option("--keep-upstream", help="Store the stages before the training, as a run would.")
    ] = False,
    device: options.Device = "cpu",
) -> None:
    """Run one cell in this process, with full tracebacks and breakpoints that work. Its result is not stored."""
    from harness.run.debug import ALWAYS, check_kinds
    from harness.run.debug import debug as run_here
    from harness.run.find import open_cell

    given = folders.session(chosen)
    check_kinds(again or ())
    chosen_device = options.one_device(device)
    opened = open_cell(cell, given, config)
    _introduce(opened, keep_upstream)
    anew = {*(again or ()), *(() if cached else ALWAYS)}
    with ExitStack() as stack:
        if anomaly:
            import torch

            stack.enter_context(torch.autograd.set_detect_anomaly(True, check_nan=True))
        try:
            done = run_here(opened, _say, again=anew, keep_upstream=keep_upstream, device=chosen_device)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may call sys.exit
            raise typer.Exit(_failed(error, pdb)) from None
    print(_text(done))


def _introduce(opened: OpenedCell, keep_upstream: bool) -> None:
    _say(f"cell {opened.cell.id}: {opened.cell.name}")
    if opened.fitting > 1:
        _say(f"the first of {opened.fitting} cells; --datasets, --methods, --seeds and --config choose another")
    kept = "the training and its result are not stored" if keep_upstream else "nothing that is run here is stored"
    _say(f"a run for debugging: {kept}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _failed(error: BaseException, enter: bool) -> int:
    """Show where an exception comes from, or enter the debugger there; the exit code."""
    import pdb
    import traceback
    from bdb import BdbQuit

    if isinstance(error, BdbQuit):
        _say("left the debugger; the cell was not finished")
        return 1
    traceback.print_exception(error)
    if enter:
        pdb.post_mortem(error.__traceback__)
    return 1


def _text(done: Debugged) -> str:
    rows = [
        f"{row['metric']} on {row['split']}, {row['rule']}: "
        + (row["status"] if row["value"] is None else f"{100 * row['value']:.2f}")
        for row in done.scores
    ]
    if done.stored is None:
        rows.append("the store has no result of this cell to compare with")
    else:
        rows.append(f"{'equal to' if done.scores == done.stored else 'differs from'} the stored result")
    return "\n".join(rows)
