"""``bench reproduce``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion, options

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.engine import Event
    from harness.run.reproduce import Reproduction
    from harness.run.session import Session


def reproduce(
    cell: Annotated[
        str,
        typer.Argument(
            help="Id of a cell, as reports and exports name it.", metavar="CELL", autocompletion=completion.cells
        ),
    ],
    folders: options.Folders,
    workers: options.Workers,
    json: options.Json = False,
) -> None:
    """Run one cell again from nothing and compare it, bit for bit, with what is stored. The store is not changed."""
    from harness.cli.progress import make_progress
    from harness.run.reproduce import reproduce as run_again

    with ExitStack() as stack:

        def watch(session: Session) -> Callable[[Event], None]:
            return stack.enter_context(make_progress(session, quiet=json)).observe

        result = run_again(cell, folders.session(), workers.options(), watch)
    if json:
        from dataclasses import asdict

        from harness.results.rows import dumps

        print(dumps({**asdict(result), "identical": result.identical}), end="")
    else:
        print(_text(result))
    raise typer.Exit(0 if result.identical else 1)


def _text(result: Reproduction) -> str:
    cell = result.cell
    lines = [f"cell {cell.id} of run {result.run}: {cell.name}"]
    if result.failure is not None:
        return "\n".join([*lines, f"it failed: {result.failure.status}: {result.failure.reason}"])
    for score in result.scores:
        before, now = ("–" if value is None else f"{100 * value:.4f}" for value in (score.before, score.now))
        mark = "" if score.before == score.now else "  differs"
        lines.append(f"  {score.metric} on {score.split}, {score.rule}: {before} before, {now} now{mark}")
    logits = {True: "equal bit for bit", False: "not equal", None: "no longer stored, not compared"}[result.same_logits]
    lines.append(f"predictions: {logits}")
    if not result.same_key:
        lines.append(f"made with other code, data or settings than now: {result.changed}")
    for name, (then, now) in sorted(result.versions.items()):
        lines.append(f"{name}: {then} then, {now} now")
    lines.append("reproduced" if result.identical else "not reproduced")
    return "\n".join(lines)
