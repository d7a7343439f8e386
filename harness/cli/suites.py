"""``bench plan``, ``bench validate`` and ``bench schema``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import Folders, Json, Plugins, Strict, Suite, SuiteOptions
from harness.cli.output import answer, chosen_format, counted, emit, table, tell_code, tell_plugins

if TYPE_CHECKING:
    from harness.plan import Plan
    from harness.plan.status import StageStatus

_MOST = 6
"""Reasons of one kind of stage that are shown."""
_STATES = ("cached", "unneeded", "new", "stale", "failed")


def plan(
    suite: Suite,
    chosen: SuiteOptions,
    folders: Folders,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Each group of stages with all its reasons.")
    ] = False,
    json: Json = False,
) -> None:
    """Show which stages a run would execute, why, and for how long. Runs no stage."""
    from harness.plan.status import made_otherwise, survey
    from harness.run.find import needed_before
    from harness.run.session import open_session

    session = open_session(suite, folders.session(chosen, tell=tell_code))
    tell_plugins(session.catalog)
    statuses = survey(session.plan, session.store, needed_before(session))
    otherwise = made_otherwise(session.plan, session.store)
    stages = [
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
    ]
    data = {
        "suite": session.suite.name,
        "pending_trials": session.plan.suite.pending,
        "made_otherwise": otherwise,
        "stages": stages,
        "unsupported": session.suite.unsupported,
        "plugins": list(map(str, session.suite.plugins)),
    }
    lines = _counts(session.plan, statuses)
    reasons = _in_full(statuses) if verbose else _in_short(statuses)
    remarks = [*map(str, session.suite.unsupported), *(f"note: {line}" for line in otherwise)]
    answer(json, data, [*lines, *reasons, *remarks])


def _counts(plan: Plan, statuses: list[StageStatus]) -> Iterator[str]:
    """Yield how many stages stand where, and the time that a run takes."""
    from harness.cli.progress import clock_text
    from harness.plan.status import totals

    yield f"suite {plan.suite.name}: {counted(len(plan.cells), 'cell')}, {counted(len(statuses), 'stage')}"
    if plan.suite.pending:
        yield f"{counted(plan.suite.pending, 'further trial')} to be chosen by TPE, by the scores of those before"
    yield ""
    rows = [(kind, *(str(counts[state]) for state in _STATES)) for kind, counts in totals(statuses).items()]
    yield from table(("stage", *_STATES), rows, range(1, 6))
    yield ""
    work = [status for status in statuses if status.state in ("new", "stale")]
    known = [status.seconds for status in work if status.seconds is not None]
    rest = f"no estimate yet for {len(work) - len(known)} of them; the others " if len(known) < len(work) else ""
    time = f"{rest}about {clock_text(sum(known))} of one worker's time" if known else "no estimate yet"
    yield f"to run: {counted(len(work), 'stage')}, {time}" if work else "nothing to run"
    yield ""


def _in_short(statuses: list[StageStatus]) -> Iterator[str]:
    """Yield a line for each kind of stage: its reasons, the most frequent first, each with how many it holds for."""
    found: defaultdict[tuple[str, str], list[StageStatus]] = defaultdict(list)
    for status in statuses:
        if status.reason:
            found[status.state, status.stage.kind].append(status)
    for (state, kind), alike in found.items():
        texts: defaultdict[str, list[str]] = defaultdict(list)
        for status in alike:
            parts = [status.reason.partition("\n")[0]] if state == "failed" else status.reason.split("; ")
            for name, text in {part if state == "failed" else _changed(part): part for part in parts}.items():
                texts[name].append(text)
        if state == "stale":
            texts.pop("seed", None)
        ordered = sorted(texts.items(), key=lambda item: -len(item[1]))
        reasons = [_reason(name, given, len(alike)) for name, given in ordered[:_MOST]]
        reasons += [f"and {len(ordered) - _MOST} more, see --verbose"] if len(ordered) > _MOST else []
        yield f"{state}: {counted(len(alike), f'{kind} stage')}: {'; '.join(reasons)}"
        if state == "failed":
            yield _stored(alike)


def _changed(difference: str) -> str:
    """Return the name of what differs: ``train.epochs`` of ``train.epochs: 2 -> 30``."""
    return re.sub(r"(\.\d+)?( changed|:.*)$", "", difference)


def _reason(name: str, texts: list[str], every: int) -> str:
    text = texts[0] if len(set(texts)) == 1 else f"{name} changed"
    return text if len(texts) == every else f"{text} ({len(texts)})"


def _stored(failed: list[StageStatus]) -> str:
    from harness.store import span

    return f"    stored {span(status.stored for status in failed)}; `bench run` runs it again with --retry-failed"


def _in_full(statuses: list[StageStatus]) -> Iterator[str]:
    """Yield each reason with the stages that it holds for."""
    grouped: defaultdict[tuple[str, str, str], list[StageStatus]] = defaultdict(list)
    for status in statuses:
        if status.reason:
            grouped[status.state, status.stage.kind, status.reason].append(status)
    for (state, _, reason), alike in grouped.items():
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        yield from (f"{state}: {alike[0].stage.title}{more}", f"    {reason}")
        if state == "failed":
            yield _stored(alike)


def validate(suite: Suite, chosen: SuiteOptions, folders: Folders, json: Json = False) -> None:
    """Check a suite and the data it needs. Every fault is reported with its place. Runs no stage."""
    from harness.errors import Problem, SuiteError, UserError
    from harness.run.session import open_session

    try:
        session = open_session(suite, folders.session(chosen, tell=tell_code))
    except UserError as error:
        if not json:
            raise
        faults = error.problems if isinstance(error, SuiteError) else (Problem("", str(error)),)
        answer(json, {"valid": False, "problems": faults}, ())
        raise typer.Exit(2) from None
    opened = session.suite
    tell_plugins(session.catalog)
    sizes = {
        "dataset": len(opened.datasets),
        "method": len(opened.methods),
        "seed": len(opened.seeds),
        "cell": session.plan.suite.cells,
    }
    counts = {f"{noun}s": number for noun, number in sizes.items()}
    data = {
        "valid": True,
        "suite": str(opened.path),
        **counts,
        "plugins": list(map(str, session.suite.plugins)),
        "problems": [],
    }
    valid = f"{opened.path}: valid; {', '.join(counted(size, noun) for noun, size in sizes.items())}"
    answer(json, data | {"unsupported": opened.unsupported}, [valid, *map(str, opened.unsupported)])


def schema(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
    built_in: Annotated[bool, typer.Option("--built-in", help="Only the components that come with bench.")] = False,
    plugin: Plugins = None,
    strict: Strict = False,
) -> None:
    """Print a JSON Schema of suites, for completion in an editor. It has every component that is registered."""
    from harness.component import BUILT_IN
    from harness.registry.catalog import Catalog
    from harness.registry.index import load_catalog
    from harness.safe_io import json_text
    from harness.suite import json_schema

    chosen_format("json", output)
    catalog = load_catalog(plugin or (), strict=strict)
    known = Catalog(entry for entry in catalog if entry.plugin == BUILT_IN) if built_in else catalog
    emit(json_text(json_schema(known)), output)
