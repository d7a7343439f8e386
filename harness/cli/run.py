"""``bench run``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import (
    Folders,
    Json,
    RetryFailed,
    Suite,
    SuiteOptions,
    Trackers,
    Workers,
    parse_bytes,
    parse_seconds,
)
from harness.cli.output import counted, note, say, tell_plugins
from harness.cli.progress import show_progress
from harness.errors import UserError

if TYPE_CHECKING:
    from harness.run.execute import RunOutcome


def run(
    context: typer.Context,
    suite: Suite,
    chosen: SuiteOptions,
    folders: Folders,
    workers: Workers,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="FILE|ADDRESS|local",
            help="Where --engine dask runs: a profile file, a scheduler's address, or this machine.",
            show_default="the suite's, else local",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", parser=parse_seconds, metavar="TIME", help="Limit of each stage, e.g. 90s, 15m."),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            "--memory", parser=parse_bytes, metavar="SIZE", help="Limit of each stage with all its processes, e.g. 4G."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Try all of it in small: 1 seed, few graphs, 2 epochs, 1 configuration."),
    ] = False,
    retry_failed: RetryFailed = False,
    tracker: Trackers = None,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the table; analyses are in files.")] = False,
) -> None:
    """Run what a suite needs and show its table. What is cached is not run again."""
    from harness.engine.contract import Job
    from harness.engine.supervisor import prepare_fork_server
    from harness.plan.status import made_otherwise
    from harness.registry.discovery import plugins_off
    from harness.run.execute import execute
    from harness.run.session import open_session
    from harness.suite.cluster import named_cluster

    if workers.engine == "processes":
        prepare_fork_server(Job.preload)  # before an edited plugin is read: torch is loaded once for both
    profile = None if cluster is None else named_cluster(cluster)
    session = open_session(suite, folders.session(chosen, tracker or (), quick=quick))
    tell_plugins(session.catalog)
    if profile is None and workers.engine == "dask":
        profile = session.suite.cluster
        if profile is not None and plugins_off():  # its options say what is run on which machines
            raise UserError("the suite's own 'cluster' is not used, as --no-plugins asks; name one with --cluster")
    engine_options = workers.options(retry_failed=retry_failed, cluster=profile, timeout=timeout, memory=memory)
    for line in made_otherwise(session.plan, session.store, ", ".join(engine_options.devices) or "cpu"):
        note(line)
    with show_progress(session, quiet=quiet) as observe:
        try:
            outcome = execute(session, engine_options, observe)
        except KeyboardInterrupt as stop:
            raise type(stop)(_interrupted(context, *map(str, stop.args))) from None
    _show(outcome, json, quiet=quiet and not json, debug="--debug" in (context.obj or ()))
    raise typer.Exit(outcome.exit_code)


def _interrupted(context: typer.Context, run: str = "") -> str:
    """Return the message that names the command which continues the run, with all its options."""
    again = f"`{shlex.join(['bench', *context.obj])}`" if context.obj else "the same command"
    typed = getattr(context.get_parameter_source("store"), "name", "") == "COMMANDLINE"
    shows = shlex.join(["bench", "report", run, *(["--store", str(context.params["store"])] if typed else [])])
    shown = f", `{shows}` shows it" if run else ""
    return f"interrupted; finished stages are kept: {again} goes on{shown}"


def _show(outcome: RunOutcome, json: bool, *, quiet: bool, debug: bool) -> None:
    from harness.cli.report import show
    from harness.results.run_record import load_findings
    from harness.results.selection import without_value

    findings = load_findings(outcome.folder)
    show(outcome.results, "json" if json else "terminal", findings=() if quiet else findings)
    if quiet:
        for finding, folder in findings:
            say(f"analysis {finding.label}: {folder}")
        if outcome.exit_code == 0:
            return
    facts, failures = outcome.record.facts, outcome.record.failures
    if debug:  # tracebacks of failed stages, also of an earlier run
        titles = {key: title for cell in outcome.record.cells for key, title in cell.needs.items()}
        for key, failure in failures.items():
            if failure.traceback:
                say(f"\n{titles.get(key, key)}:\n{failure.traceback}")
    skipped = sum(failure.status == "skipped" for failure in failures.values())
    also = f", {skipped} skipped" if skipped else ""
    if empty := without_value(outcome.results):
        also += f", {counted(empty, 'cell')} without a value"
    old = sum(bool(failure.since) and failure.status != "skipped" for failure in failures.values())
    hint = f"; {counted(old, 'failure')} of an earlier run, not tried again without --retry-failed" if old else ""
    if not debug and any(failure.traceback for failure in failures.values()):
        hint += "; --debug shows tracebacks"
    say(
        f"\n{counted(facts['stages'], 'stage')} run, {facts['cached']} cached, {len(failures) - skipped} failed{also} "
        f"in {facts['seconds']:.1f} s; run {outcome.record.id} in {outcome.folder}{hint}"
    )
    if outcome.page is not None:
        say(f"report: {outcome.page}")
