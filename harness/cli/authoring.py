"""``bench new`` and ``bench check``: write a component and check it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.completion import complete_components
from harness.cli.options import Json, Plugins, Sources, parse_bytes, parse_seconds
from harness.cli.output import answer, counted, print_lines, say
from harness.errors import UserError


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What it is: baseline, dataset, encoder …")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in suites, such as my-method.")],
    package: Annotated[bool, typer.Option("--package", help="A distribution to install, not a single file.")] = False,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where to write; made if it is not there.")
    ] = Path(),
    plugin: Plugins = None,
) -> None:
    """Write a working component to start from, and a suite for it. The suite compares it with other methods."""
    from harness.authoring import distribution, example, names_of, single_file, write
    from harness.registry.index import load_catalog

    names = names_of(kind, name, load_catalog(plugin or ()))
    if package:
        folder = folder / f"bench-{names.name}"
    paths = write(folder, distribution(names) if package else single_file(names))
    files = [shlex.quote(str(path)) for path in paths]
    suite = next(file for file in files if file.endswith(".yaml"))
    checked = f"pip install -e {shlex.quote(str(folder))} && bench check {kind}/{name}"
    print_lines(
        [
            f"wrote {', '.join(files)}",
            f"the example: {example(kind)}",
            "next:",
            f"  {checked if package else f'bench check {files[0]}'}  # does it keep its contract?",
            f"  bench plan {suite}  # the suite that compares it: what would run, and for how long",
            f"  bench run {suite}  # the table",
        ]
    )


def check(
    sources: Sources,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME|KIND/NAME|PATH", help="A component, or a plugin file.", autocompletion=complete_components
        ),
    ] = None,
    all_components: Annotated[bool, typer.Option("--all", help="Every component that is registered.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", parser=parse_seconds, metavar="TIME", help="Limit of each component's checks, e.g. 90s, 15m."
        ),
    ] = 300,
    memory: Annotated[
        int,
        typer.Option("--memory", parser=parse_bytes, metavar="SIZE", help="Limit of each component's checks, e.g. 8G."),
    ] = 4 * 10**9,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every check, not only those that fail.")] = False,
    json: Json = False,
) -> None:
    """Check on a toy set that components keep their contract. Gradients, seeds, odd batches, hyperparameters …"""
    from harness.engine.supervisor import prepare_fork_server
    from harness.registry.index import find_components
    from harness.testing.isolated_checks import PRELOAD, check_apart

    if all_components == bool(names):
        raise UserError("name components or plugin files, or say --all")
    prepare_fork_server(PRELOAD)  # before an edited plugin is read: torch is loaded once for both
    entries = find_components(names or (), sources.plugin or ())
    say(f"checking {counted(len(entries), 'component')} …")
    reports = []
    for report in check_apart(entries, sources.data_folder(), jobs, timeout, memory):
        reports.append(report)
        if not json:
            print_lines([report.text(verbose=verbose)])
    failed = [report for report in reports if not report.passed]
    skipped = sum(report.all_skipped for report in reports)
    total = f"{len(reports) - len(failed)} of {len(reports)} components passed"
    data = {"passed": not failed, "reports": [report.to_json() for report in reports]}
    answer(json, data, [f"{total}, {skipped} of them skipped" if skipped else total])
    if failed:
        raise typer.Exit(1)
