"""``bench reproduce``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion, options
from harness.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.engine import Event
    from harness.run.reproduce import Reproduction
    from harness.run.session import Session


@app.command()
def reproduce(
    cell: Annotated[
        str,
        typer.Argument(
            help="Id of a cell, as reports and exports name it.", metavar="CELL", autocompletion=completion.cells
        ),
    ],
    store: options.StoreDir = None,
    data_dir: options.DataDir = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Worker processes.", show_default="cores")] = None,
    engine: Annotated[
        str,
        typer.Option("--engine", help="processes or inline.", autocompletion=completion.one_of("processes", "inline")),
    ] = "processes",
    device: options.Device = "cpu",
    jobs_per_device: options.JobsPerDevice = None,
    plugin: options.Plugins = None,
    json: options.Json = False,
) -> None:
    """Run one cell again from nothing and compare it, bit for bit, with what is stored. The store is not changed."""
    from harness.cli.progress import make_progress
    from harness.run.execute import EngineOptions
    from harness.run.reproduce import reproduce as run_again

    given = options.session_options(store=store, data_dir=data_dir, plugins=plugin)
    chosen = EngineOptions(engine, jobs, device=device, jobs_per_device=jobs_per_device)
    with ExitStack() as stack:

        def watch(session: Session) -> Callable[[Event], None]:
            return stack.enter_context(make_progress(session, quiet=json)).observe

        found = run_again(cell, given, chosen, watch)
    if json:
        from dataclasses import asdict

        from harness.results.rows import dumps

        print(dumps({**asdict(found), "identical": found.identical}), end="")
    else:
        print(_text(found))
    raise typer.Exit(0 if found.identical else 1)


def _text(found: Reproduction) -> str:
    cell = found.cell
    lines = [f"cell {cell.id} of run {found.run}: {cell.name}"]
    if found.failure is not None:
        return "\n".join([*lines, f"it failed: {found.failure.status}: {found.failure.reason}"])
    for score in found.scores:
        before, now = ("–" if value is None else f"{100 * value:.4f}" for value in (score.before, score.now))
        mark = "" if score.before == score.now else "  differs"
        lines.append(f"  {score.metric} on {score.split}, {score.rule}: {before} before, {now} now{mark}")
    logits = {True: "equal bit for bit", False: "not equal", None: "no longer stored, not compared"}[found.same_logits]
    lines.append(f"predictions: {logits}")
    if not found.same_key:
        lines.append(f"made with other code, data or settings than now: {found.changed}")
    for name, (then, now) in sorted(found.versions.items()):
        lines.append(f"{name}: {then} then, {now} now")
    lines.append("reproduced" if found.identical else "not reproduced")
    return "\n".join(lines)
