"""``bench check``: the conformance kit on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options
from harness.cli.main import app
from harness.errors import UserError

if TYPE_CHECKING:
    from harness.testing.report import Report


@app.command()
def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME|KIND/NAME|PATH", help="A component, or a plugin file.")
    ] = None,
    all_components: Annotated[bool, typer.Option("--all", help="Every component that is registered.")] = False,
    plugin: options.Plugins = None,
    data_dir: options.DataDir = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every check, not only those that fail.")] = False,
    json: options.Json = False,
) -> None:
    """Try components on a toy set: gradients, seeds, weight 0 = ERM, odd batches, hyperparameters …"""
    from harness.results import dumps
    from harness.testing.select import check_entries, find

    if all_components == bool(names):
        raise UserError("name components or plugin files, or say --all")
    entries = find(names or (), plugin or ())
    reports = []
    for report in check_entries(entries, options.data_folder(data_dir), jobs):
        reports.append(report)
        if not json:
            print(report.text(verbose=verbose), flush=True)
    failed = [report for report in reports if not report.passed]
    if json:
        print(dumps({"passed": not failed, "reports": [report.to_json() for report in reports]}), end="")
    else:
        print(f"{len(reports) - len(failed)} of {len(reports)} components passed" + _skipped(reports))
    if failed:
        raise typer.Exit(1)


def _skipped(reports: list[Report]) -> str:
    """How many could not be checked at all, as they count as passed."""
    count = sum(len(report.with_status("skipped")) == len(report.outcomes) for report in reports)
    return f", {count} of them skipped" if count else ""
