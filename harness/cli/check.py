"""``bench check``: the conformance kit on the command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion, options
from harness.component import KINDS
from harness.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from harness.testing.report import Report


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME|KIND/NAME|PATH",
            help="A component, or a plugin file.",
            autocompletion=completion.components_or_files,
        ),
    ] = None,
    all_components: Annotated[bool, typer.Option("--all", help="Every component that is registered.")] = False,
    plugin: options.Plugins = None,
    data_dir: options.DataDir = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    timeout: Annotated[str, typer.Option("--timeout", help="Limit of each component's checks, e.g. 90s, 15m.")] = "5m",
    memory: Annotated[str, typer.Option("--memory", help="Limit of each component's checks, e.g. 8G.")] = "4G",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every check, not only those that fail.")] = False,
    rules: Annotated[
        bool, typer.Option("--rules", help="List the rules, of the kinds that are named or of all.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Try components on a toy set: gradients, seeds, weight 0 = ERM, odd batches, hyperparameters …"""
    if rules:
        _list_rules(names or [], json)
        return
    from harness.cli.output import counted
    from harness.results.rows import dumps
    from harness.safe_io import visible
    from harness.testing.isolated_checks import check_apart
    from harness.testing.select import find

    if all_components == bool(names):
        raise UserError("name components or plugin files, or say --all")
    limit = options.parse_seconds(timeout) or 0.0
    if limit <= 0:
        raise UserError(f"--timeout {timeout}: expected more than nothing")
    most = options.parse_bytes(memory) or 0
    if most <= 0:
        raise UserError(f"--memory {memory}: expected more than nothing")
    entries = find(names or (), plugin or ())
    if not json:
        print(f"checking {counted(len(entries), 'component')} …", file=sys.stderr, flush=True)
    reports = []
    for report in check_apart(entries, options.data_folder(data_dir), jobs, limit, most):
        reports.append(report)
        if not json:
            print(report.text(verbose=verbose), flush=True)
    failed = [report for report in reports if not report.passed]
    if json:
        print(visible(dumps({"passed": not failed, "reports": [report.to_json() for report in reports]})), end="")
    else:
        print(f"{len(reports) - len(failed)} of {len(reports)} components passed" + _skipped(reports))
    if failed:
        raise typer.Exit(1)


def _list_rules(kinds: list[str], json: bool) -> None:
    """List each kind's checks: name and contract."""
    from harness.cli.output import show_text
    from harness.results.rows import dumps
    from harness.testing.checks import about, checks_of

    for kind in kinds:
        if kind not in KINDS:
            raise UserError(f"no kind is called '{kind}'{did_you_mean(kind, KINDS)}; there are: {', '.join(KINDS)}")
    listed = {kind: {check.__name__: about(check) for check in checks_of(kind)} for kind in kinds or KINDS}
    if json:
        rules = {kind: [{"id": name, "about": text} for name, text in texts.items()] for kind, texts in listed.items()}
        print(dumps(rules), end="")
        return
    for kind, rules_of_kind in listed.items():
        show_text(f"{kind}:")
        for name, text in rules_of_kind.items():
            show_text(f"  {name}: {text}")


def _skipped(reports: list[Report]) -> str:
    """Return the number of components to which no check applied, as they count as passed."""
    count = sum(report.all_skipped for report in reports)
    return f", {count} of them skipped" if count else ""
