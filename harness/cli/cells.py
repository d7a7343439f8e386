"""``bench debug``, ``bench reproduce`` and ``bench profile``: one cell again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.completion import complete_cells
from harness.cli.options import CellOrSuite, Config, Device, Folders, Json, SuiteOptions, Workers, one_device
from harness.cli.output import answer, print_lines, require_known, say, table
from harness.cli.progress import show_progress

if TYPE_CHECKING:
    from harness.engine import Event
    from harness.profile import CellProfile, TrainingProfile
    from harness.run.collect import ScoreRow
    from harness.run.find import OpenedCell

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
    from harness.run.debug import ALWAYS, KINDS
    from harness.run.debug import debug as run_here
    from harness.run.find import open_cell

    for kind in again or ():
        require_known("--again", kind, KINDS)
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
            scores, stored = run_here(opened, say, again=anew, keep_upstream=keep_upstream, device=chosen_device)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may call sys.exit
            raise typer.Exit(_failed(error, pdb)) from None
    print_lines(_debugged(scores, stored))


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


def profile(
    cell: CellOrSuite,
    chosen: SuiteOptions,
    folders: Folders,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Training steps to measure, after three more.")] = 30,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, help="Most seconds of each part of the measurement.")
    ] = 8.0,
    from_epoch: Annotated[
        int, typer.Option("--from-epoch", min=0, help="Tell the method that this epoch begins, for its schedules.")
    ] = 0,
    top: Annotated[int, typer.Option("--top", min=1, help="How many operations to show.")] = 12,
    functions: Annotated[bool, typer.Option("--functions", help="Python functions too.")] = False,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="FOLDER", help="Write a Chrome trace of some steps here.")
    ] = None,
    config: Config = None,
    device: Device = "cpu",
    json: Json = False,
) -> None:
    """Show where a cell's time goes: stages, steps, operations. Steps stand beside ERM's. Stores no result."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's recorder tells of itself otherwise
    from harness.profile import Limits
    from harness.profile import profile as measure
    from harness.run.find import open_cell

    opened = open_cell(cell, folders.session(chosen), config)
    introduce(opened)
    limits = Limits(steps, seconds, from_epoch)
    done = measure(opened, limits, _observe, top=top, functions=functions, trace=trace, device=one_device(device))
    answer(json, done.to_json(), profile_lines(done))


def _observe(event: Event) -> None:
    if event.kind == "started":
        say(f"running first: {event.stage.title}")


def profile_lines(profile: CellProfile) -> Iterator[str]:
    """Yield the tables of a profile."""
    own, erm = profile.training, profile.erm
    yield "Stages of the cell, in wall time as recorded:"
    stages = [(stage["title"], _took(stage, own)) for stage in profile.stages]
    yield from table(("stage", "took"), stages, {1})
    steps = f"{own.steps} steps of {profile.batch_size} graphs ({erm.steps} of ERM)"
    yield from ("", f"Training, in ms of processor time; medians over {steps}:")
    yield from table(("part", profile.method, "share", "ERM", "× ERM"), _parts(own, erm), {1, 2, 3, 4})
    times = f"{own.total / erm.total:.1f} times ERM's"
    yield from ("", f"The whole training takes about {_long(own.total)} of processor time, {times}.")
    for what, costs in (("operations of torch", profile.operations), ("Python functions", profile.functions)):
        if costs:
            yield from ("", f"Costliest {what}, without what they call:")
            rows = [(f"{100 * cost.share:.0f} %", f"{cost.calls:.1f}", cost.name) for cost in costs]
            yield from table(("share", "calls", "name"), rows, {0, 1})
    if profile.trace is not None:
        yield from ("", f"trace: {profile.trace} (open it in https://ui.perfetto.dev)")


def _took(stage: dict[str, Any], own: TrainingProfile) -> str:
    if stage["kind"] == "train":
        return f"about {_long(own.total)} (processor)"
    return "not run" if stage["seconds"] is None else _long(stage["seconds"])


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
