"""A profile for people: tables of rich. No torch."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.profiling.result import Operation, Profile, TrainingProfile, ratio

_WHAT = {
    "batch": "gather the batch",
    "forward": "forward passes",
    "loss": "loss, beside these",
    "backward": "gradients",
    "optimizer": "optimizer",
    "other": "other",
}
_NOTHING = 1e-5
"""Seconds; less is neither told nor compared."""


def show(profile: Profile, console: Console) -> None:
    """Print all of it."""
    chosen = "" if profile.config == "-" else f" ({profile.config})"
    head = f"cell {profile.cell}: {profile.method}{chosen} on {profile.dataset}, seed {profile.seed}"
    console.print(escape(head), soft_wrap=True)
    console.print(_stages(profile))
    console.print(_steps(profile))
    if profile.times is not None:
        whole = f"about {_long(profile.training.total)} of processor time, {profile.times:.1f} times ERM's"
        console.print(f"The whole training takes {whole}.", soft_wrap=True)
    console.print(_operations("operations of torch", profile.operations))
    if profile.functions:
        console.print(_operations("Python functions", profile.functions))
    if profile.trace is not None:
        console.print(f"trace: {profile.trace} (open it in https://ui.perfetto.dev)", soft_wrap=True, markup=False)


def _stages(profile: Profile) -> Table:
    table = Table(title="Stages of the cell, in wall time as recorded", title_justify="left")
    table.add_column("stage", overflow="fold")
    table.add_column("took", justify="right")
    for stage in profile.stages:
        about = f"about {_long(profile.training.total)} (processor)" if stage.kind == "train" else "not run"
        table.add_row(escape(stage.title), about if stage.seconds is None else _long(stage.seconds))
    return table


def _steps(profile: Profile) -> Table:
    own, erm = profile.training, profile.plain
    steps = f"{own.steps} steps of {profile.batch_size} graphs ({erm.steps} of ERM)"
    table = Table(title=f"Training, in ms of processor time; medians over {steps}", title_justify="left")
    table.add_column("part", overflow="fold")
    for name in (profile.method, "share", "ERM", "× ERM"):
        table.add_column(escape(name), justify="right", overflow="fold")
    for name in own.sections:
        table.add_row(_WHAT[name], *_beside(own.sections[name], erm.sections[name], own.step))
    table.add_section()
    table.add_row("a step", *_beside(own.step, erm.step, own.step))
    table.add_section()
    for text, value, other in _epoch(own, erm):
        table.add_row(text, *_beside(value, other, own.epoch))
    return table


def _epoch(own: TrainingProfile, erm: TrainingProfile) -> list[tuple[str, float, float]]:
    steps = own.steps_per_epoch * own.step, erm.steps_per_epoch * erm.step
    rows = [
        (f"an epoch's {own.steps_per_epoch} steps", *steps),
        ("predicting validation", own.evaluation, erm.evaluation),
        ("the method's own start of an epoch", own.epoch_hooks, erm.epoch_hooks),
        ("an epoch in all", own.epoch, erm.epoch),
        ("the method's own start, once", own.fit_start, erm.fit_start),
    ]
    return [row for row in rows if row[1] > _NOTHING or row[2] > _NOTHING]


def _beside(value: float, other: float, whole: float) -> tuple[str, str, str, str]:
    times = ratio(value, other) if other > _NOTHING else None
    part = f"{100 * value / whole:.0f} %" if whole > 0 and value <= whole else ""
    return _ms(value), part, _ms(other), "" if times is None else f"{times:.1f}"


def _operations(what: str, rows: Sequence[Operation]) -> Table:
    table = Table(title=f"Costliest {what}, without what they call", title_justify="left")
    table.add_column("name", overflow="fold")
    for name in ("calls", "share"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(escape(row.name), f"{row.calls:.1f}", f"{100 * row.share:.0f} %")
    return table


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.2f}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


def _long(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
