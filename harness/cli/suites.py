"""``bench plan``, ``bench validate`` and ``bench schema``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.notices import as_json, tell, tell_withheld
from harness.cli.options import Folders, Json, Plugins, Strict, Suite, SuiteOptions
from harness.cli.output import chosen_format, emit, print_json
from harness.safe_io import visible

if TYPE_CHECKING:
    from harness.plan.status import StageStatus


def plan(
    suite: Suite,
    chosen: SuiteOptions,
    folders: Folders,
    json: Json = False,
) -> None:
    """Show which stages a run would execute, why, and about how long it would take. Runs nothing."""
    from harness.plan.status import made_otherwise, survey
    from harness.run.session import open_session

    session = open_session(suite, folders.session(chosen, tell=tell))
    tell_withheld(session.catalog)
    statuses = survey(session.plan, session.store)
    otherwise = made_otherwise(session.plan, session.store)
    if json:
        plugins = as_json(session.suite.plugins)
        print_json({**_as_json(session.suite.name, statuses, otherwise), "plugins": plugins})
        return
    notes = [f"note: {line}" for line in otherwise]
    for line in [*_lines(session.suite.name, len(session.plan.cells), statuses), *([""] if notes else []), *notes]:
        print(visible(line))


def _lines(name: str, cells: int, statuses: list[StageStatus]) -> list[str]:
    from harness.cli.output import counted
    from harness.cli.progress import clock_text
    from harness.plan.status import totals

    states = ("cached", "unneeded", "new", "stale", "failed")
    lines = [f"suite {name}: {counted(cells, 'cell')}, {counted(len(statuses), 'stage')}", ""]
    lines.append(f"{'stage':<10}" + "".join(f"{state:>10}" for state in states))
    for kind, counts in totals(statuses).items():
        lines.append(f"{kind:<10}" + "".join(f"{counts[state]:>10}" for state in states))
    work = [status for status in statuses if status.runs]
    known = [status.seconds for status in work if status.seconds is not None]
    if work:
        rest = f", {len(work) - len(known)} of unknown length" if len(known) < len(work) else ""
        time = f"about {clock_text(sum(known))} of one worker's time{rest}" if known else "none like it timed before"
        lines += ["", f"to run: {counted(len(work), 'stage')}, {time}"]
    else:
        lines += ["", "nothing to run"]
    return lines + _reasons(statuses)


def _reasons(statuses: list[StageStatus]) -> list[str]:
    """Return each reason once, with the stages that it holds for."""
    grouped: dict[tuple[str, str, str], list[StageStatus]] = {}
    for status in statuses:
        if status.reason:
            grouped.setdefault((status.state, status.stage.kind, status.reason), []).append(status)
    from harness.store import span

    lines: list[str] = []
    for (state, _, reason), alike in grouped.items():
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        lines += ["", f"{state}: {alike[0].stage.title}{more}", f"    {reason}"]
        if state == "failed":
            when = span(status.stored for status in alike)
            lines.append(f"    stored {when}; `bench run` runs it again with --retry-failed")
    return lines


def _as_json(name: str, statuses: list[StageStatus], otherwise: list[str]) -> dict[str, Any]:
    return {
        "suite": name,
        "made_otherwise": otherwise,
        "stages": [
            {
                "kind": status.stage.kind,
                "title": status.stage.title,
                "key": status.stage.key,
                "state": status.state,
                "reason": status.reason,
                "seconds": status.seconds,
                "stored": status.stored,
                "inputs": list(status.stage.inputs),
            }
            for status in statuses
        ],
    }


def validate(
    suite: Suite,
    chosen: SuiteOptions,
    folders: Folders,
    json: Json = False,
) -> None:
    """Check a suite and the data it needs; every fault is reported with its place. Runs nothing."""
    from harness.cli.output import counted
    from harness.errors import Problem, SuiteError, UserError
    from harness.run.session import open_session

    try:
        session = open_session(suite, folders.session(chosen, tell=tell))
    except UserError as error:
        if not json:
            raise
        faults = error.problems if isinstance(error, SuiteError) else (Problem("", str(error)),)
        problems = [vars(problem) for problem in faults]
        print_json({"valid": False, "problems": problems})
        raise typer.Exit(2) from None
    opened = session.suite
    tell_withheld(session.catalog)
    sizes = {
        "dataset": len(opened.datasets),
        "method": len(opened.methods),
        "seed": len(opened.seeds),
        "cell": len(session.plan.cells),
    }
    if json:
        counts = {f"{noun}s": number for noun, number in sizes.items()}
        facts = {"suite": str(opened.path), **counts, "plugins": as_json(opened.plugins), "problems": []}
        print_json({"valid": True, **facts})
        return
    print(f"{opened.path}: valid; {', '.join(counted(number, noun) for noun, number in sizes.items())}")


def schema(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
    built_in: Annotated[bool, typer.Option("--built-in", help="Only the components that come with bench.")] = False,
    plugin: Plugins = None,
    strict: Strict = False,
) -> None:
    """Print a JSON Schema of suites with every component that is registered, for completion in an editor."""
    from harness.registry.catalog import Catalog
    from harness.registry.discovery import BUILT_IN
    from harness.registry.index import load_catalog
    from harness.safe_io import json_text
    from harness.suite import json_schema

    chosen_format("json", output)
    catalog = load_catalog(plugin or (), strict=strict)
    known = Catalog(entry for entry in catalog if entry.plugin == BUILT_IN) if built_in else catalog
    emit(json_text(json_schema(known)), output)
