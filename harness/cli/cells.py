"""``bench debug``, ``bench reproduce`` and ``bench profile``: one cell again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import CellOrSuite, Device, Folders, Json, SuiteOptions, Workers, one_device
from harness.cli.output import answer, print_lines, say, table
from harness.cli.progress import show_progress

if TYPE_CHECKING:
    from harness.engine import Event
    from harness.profile import TrainingProfile
    from harness.run.collect import ScoreRow
    from harness.run.find import OpenedCell
    from harness.store import Stage

_PARTS = {
    "batch": "gather the batch",
    "forward": "forward passes",
    "loss": "loss, beside these",
    "backward": "gradients",
    "optimizer": "optimizer",
    "other": "other",
}
_LEAST = 1e-5
"""Seconds; less is neither told nor compared."""


def debug(
    cell: CellOrSuite,
    chosen: SuiteOptions,
    folders: Folders,
    pdb: Annotated[bool, typer.Option("--pdb", help="Enter the debugger where an exception was raised.")] = False,
    device: Device = "cpu",
) -> None:
    """Run one cell in this process, for tracebacks and breakpoints. Its result is not stored."""
    from harness.run.debug import debug as run_here
    from harness.run.find import open_cell

    chosen_device = one_device(device)
    opened = open_cell(cell, folders.session(chosen))
    introduce(opened)
    say("a run for debugging: nothing that is run here is stored")
    try:
        scores, stored = run_here(opened, say, device=chosen_device)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin may call sys.exit
        raise typer.Exit(_failed(error, pdb)) from None
    print_lines(_debugged(scores, stored))


def introduce(opened: OpenedCell) -> None:
    """Name the cell that was chosen, and how to choose another, on the error stream."""
    say(f"cell {opened.cell.id}: {opened.cell.name}")
    if opened.fitting > 1:
        say(f"the first of {opened.fitting} cells; --datasets, --methods, --seeds or a cell's id choose another")


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


def _debugged(scores: list[ScoreRow], stored: list[ScoreRow] | None) -> Iterator[str]:
    for row in scores:
        value = row.status if row.value is None else f"{100 * row.value:.2f}"
        yield f"{row.metric} on {row.split}, {row.rule}: {value}"
    if stored is None:
        yield "the store has no result of this cell to compare with"
    else:
        yield f"{'equal to' if scores == stored else 'differs from'} the stored result"


def reproduce(
    cell: Annotated[
        str, typer.Argument(help="Id of a cell, as `bench export` and HTML reports show it.", metavar="CELL")
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


def profile(cell: CellOrSuite, chosen: SuiteOptions, folders: Folders, device: Device = "cpu") -> None:
    """Show where a cell's time goes: stages and parts of a step. Steps stand beside ERM's. Stores no result."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's recorder tells of itself otherwise
    from harness.profile import profile as measure
    from harness.run.find import open_cell

    opened = open_cell(cell, folders.session(chosen))
    introduce(opened)
    own, erm = measure(opened, _observe, device=one_device(device))
    print_lines(profile_lines(opened, own, erm))


def _observe(event: Event) -> None:
    if event.kind == "started":
        say(f"running first: {event.stage.title}")


def profile_lines(opened: OpenedCell, own: TrainingProfile, erm: TrainingProfile) -> Iterator[str]:
    """Yield the tables of a profile."""
    cell, (plan, store) = opened.cell, (opened.session.plan, opened.session.store)
    yield "Stages of the cell, in wall time as recorded:"
    needed = plan.ancestry(cell.score)
    stages = [
        (stage.title, _took(stage, store.record(key).get("seconds"), own))
        for key, stage in plan.stages.items()
        if key in needed
    ]
    yield from table(("stage", "took"), stages, {1})
    steps = f"{own.steps} steps of {cell.configuration.train.batch_size} graphs ({erm.steps} of ERM)"
    yield from ("", f"Training, in ms of processor time; medians over {steps}:")
    yield from table(("part", cell.method, "share", "ERM", "× ERM"), _parts(own, erm), {1, 2, 3, 4})
    times = f"{own.total / erm.total:.1f} times ERM's"
    yield from ("", f"The whole training takes about {_long(own.total)} of processor time, {times}.")


def _took(stage: Stage, seconds: float | None, own: TrainingProfile) -> str:
    if stage.kind == "train":
        return f"about {_long(own.total)} (processor)"
    return "not run" if seconds is None else _long(seconds)


def _parts(own: TrainingProfile, erm: TrainingProfile) -> list[tuple[str, ...]]:
    rows = [(text, own.sections[part], erm.sections[part], own.step) for part, text in _PARTS.items()]
    steps = own.steps_per_epoch * own.step, erm.steps_per_epoch * erm.step
    rows += [
        ("a step", own.step, erm.step, own.step),
        (f"an epoch's {own.steps_per_epoch} steps", *steps, own.epoch),
        ("predicting validation", own.evaluation, erm.evaluation, own.epoch),
        ("the method's own start of an epoch", own.epoch_hooks, erm.epoch_hooks, own.epoch),
        ("an epoch in all", own.epoch, erm.epoch, own.epoch),
        ("the method's own start, once", own.fit_start, erm.fit_start, own.total),
    ]
    return [
        (
            text,
            f"{1e3 * value:,.2f}",
            f"{100 * value / whole:.0f} %",
            f"{1e3 * other:,.2f}",
            f"{value / other:.1f}" if other > _LEAST else "",
        )
        for text, value, other, whole in rows
        if max(value, other) > _LEAST
    ]


def _long(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
