"""``bench profile``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options
from harness.cli.main import app
from harness.cli.output import require_folder_name

if TYPE_CHECKING:
    from harness.engine import Event


@app.command()
def profile(
    cell: options.CellOrSuite,
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
    seeds: options.Seeds = None,
    sets: options.Sets = None,
    datasets: options.Datasets = None,
    methods: options.Methods = None,
    config: options.Config = None,
    store: options.StoreDir = None,
    data_dir: options.DataDir = None,
    device: options.Device = "cpu",
    plugin: options.Plugins = None,
    json: options.Json = False,
) -> None:
    """Show where a cell's time goes: stages, parts of a training step beside ERM's, operations. Stores no result."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's recorder tells of itself otherwise
    from harness.profiling.cell import profile as measure
    from harness.runs.address import find

    if trace is not None:
        require_folder_name(trace, "--trace")
    given = options.session_options(
        store=store, data_dir=data_dir, seeds=seeds, sets=sets, datasets=datasets, methods=methods, plugins=plugin
    )
    found = find(cell, given, config)
    if found.fitting > 1:
        options_text = "--datasets, --methods, --seeds and --config choose another"
        print(f"the first of {found.fitting} cells; {options_text}", file=sys.stderr)
    from harness.profiling.training import Limits

    limits = Limits(steps, seconds, from_epoch)
    chosen = options.one_device(device)
    done = measure(found, given, limits, _observe, top=top, functions=functions, trace=trace, device=chosen)
    if json:
        from harness.results import dumps

        print(dumps(done.to_json()), end="")
        return
    from rich.console import Console

    from harness.profiling.text import show

    show(done, Console())


def _observe(event: Event) -> None:
    """Tell of stages that have to run before anything can be measured."""
    if event.kind == "started":
        print(f"running first: {event.stage.title}", file=sys.stderr)
