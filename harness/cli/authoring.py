"""``bench new`` and ``bench check``: write a component and check it."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.completion import complete_components_or_files
from harness.cli.options import Json, Plugins, Sources, parse_bytes, parse_seconds
from harness.cli.output import print_json
from harness.component import KINDS, require_kind
from harness.errors import UserError

if TYPE_CHECKING:
    from harness.testing.report import Report


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What it is: baseline, dataset, encoder …")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in suites, such as my-method.")],
    package: Annotated[bool, typer.Option("--package", help="A distribution to install, not a single file.")] = False,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where to write; made if it is not there.")
    ] = Path(),
    plugin: Plugins = None,
) -> None:
    """Write a working, commented component to start from, and a suite that compares it."""
    from harness.authoring.make import distribution, example, names_of, single_file, write
    from harness.registry.index import load_catalog

    names = names_of(kind, name, load_catalog(plugin or ()))
    if package:
        folder = folder / f"bench-{names.name}"
    paths = write(folder, distribution(names) if package else single_file(names))
    print(f"wrote {', '.join(map(_shown, paths))}")
    steps = _package_steps(kind, name, folder) if package else _file_steps(paths)
    print(f"the example: {example(kind)}")
    print("next:")
    width = max(len(step) for step, _ in steps)
    for step, about in steps:
        print(f"  {step.ljust(width)}  # {about}")


def _file_steps(paths: list[Path]) -> list[tuple[str, str]]:
    code, suite = map(_shown, paths)
    return [
        (f"bench check {code}", "does it keep its contract? Then change it to your idea, and check again"),
        (f"bench plan {suite}", "the suite that compares it: what would run, and for how long"),
        (f"bench run {suite}", "the table"),
    ]


def _package_steps(kind: str, name: str, folder: Path) -> list[tuple[str, str]]:
    suite = _shown(folder / "suite.yaml")
    return [
        (f"pip install -e {_shown(folder)} && bench check {kind}/{name}", "the harness finds it by its entry point"),
        (f"bench plan {suite}", "the suite that compares it: what would run, and for how long"),
        (f"bench run {suite}", "the table"),
    ]


def _shown(path: Path) -> str:
    """Return a path as a user would type it in the current folder."""
    short = os.path.relpath(path)
    return shlex.quote(str(path.absolute()) if short.startswith("..") else short)


def check(
    sources: Sources,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME|KIND/NAME|PATH",
            help="A component, or a plugin file.",
            autocompletion=complete_components_or_files,
        ),
    ] = None,
    all_components: Annotated[bool, typer.Option("--all", help="Every component that is registered.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    timeout: Annotated[str, typer.Option("--timeout", help="Limit of each component's checks, e.g. 90s, 15m.")] = "5m",
    memory: Annotated[str, typer.Option("--memory", help="Limit of each component's checks, e.g. 8G.")] = "4G",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every check, not only those that fail.")] = False,
    rules: Annotated[
        bool, typer.Option("--rules", help="List the rules, of the kinds that are named or of all.")
    ] = False,
    json: Json = False,
) -> None:
    """Try components on a toy set: gradients, seeds, weight 0 = ERM, odd batches, hyperparameters …"""
    if rules:
        _list_rules(names or [], json)
        return
    from harness.cli.output import counted
    from harness.testing.isolated_checks import check_apart
    from harness.testing.select import find

    if all_components == bool(names):
        raise UserError("name components or plugin files, or say --all")
    limit = parse_seconds(timeout) or 0.0
    if limit <= 0:
        raise UserError(f"--timeout {timeout}: expected more than nothing")
    most = parse_bytes(memory) or 0
    if most <= 0:
        raise UserError(f"--memory {memory}: expected more than nothing")
    entries = find(names or (), sources.plugin or ())
    if not json:
        print(f"checking {counted(len(entries), 'component')} …", file=sys.stderr, flush=True)
    reports = []
    for report in check_apart(entries, sources.data_folder(), jobs, limit, most):
        reports.append(report)
        if not json:
            print(report.text(verbose=verbose), flush=True)
    failed = [report for report in reports if not report.passed]
    if json:
        print_json({"passed": not failed, "reports": [report.to_json() for report in reports]})
    else:
        print(f"{len(reports) - len(failed)} of {len(reports)} components passed" + _skipped(reports))
    if failed:
        raise typer.Exit(1)


def _list_rules(kinds: list[str], json: bool) -> None:
    """List each kind's checks: name and contract."""
    from harness.cli.output import show_text
    from harness.testing.checks import about, checks_of

    listed = {
        kind: {check.__name__: about(check) for check in checks_of(kind)} for kind in map(require_kind, kinds or KINDS)
    }
    if json:
        rules = {kind: [{"id": name, "about": text} for name, text in texts.items()] for kind, texts in listed.items()}
        print_json(rules)
        return
    for kind, rules_of_kind in listed.items():
        show_text(f"{kind}:")
        for name, text in rules_of_kind.items():
            show_text(f"  {name}: {text}")


def _skipped(reports: list[Report]) -> str:
    """Return the number of components to which no check applied, as they count as passed."""
    count = sum(report.all_skipped for report in reports)
    return f", {count} of them skipped" if count else ""
