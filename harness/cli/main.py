"""The Typer application with its commands; errors become messages and exit codes."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from harness import __version__
from harness.cli.authoring import check, new
from harness.cli.cache import COMMANDS as CACHE_COMMANDS
from harness.cli.cells import debug, profile, reproduce
from harness.cli.components import describe, doctor, list_components
from harness.cli.data import COMMANDS as DATA_COMMANDS
from harness.cli.options import Commands, register
from harness.cli.output import say
from harness.cli.report import compare, compare_to_record, report
from harness.cli.run import run
from harness.cli.runs import analyse, export, runs
from harness.cli.suites import plan, schema, validate
from harness.errors import BenchError, UserError
from harness.safe_io import DISK_FULL

INTERRUPTED = 130
_ANYWHERE = ("--debug", "--no-plugins")


class Guarded(TyperGroup):
    """The group of all commands: takes the options that may stand anywhere, and turns errors into messages."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **options: Any) -> Any:
        """Return the context in which a command runs; its ``obj`` holds the command line."""
        kept = [item for item in args if item not in _ANYWHERE]
        _refuse_empty(args)
        context = super().make_context(info_name, kept, *rest, obj=tuple(args), **options)
        if sys.stdout is None:  # the shell closed it, as by `>&-`
            sys.stdout = context.with_resource(Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        context.with_resource(errors_as_messages(debug="--debug" in args))
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")  # a sign that the output's encoding lacks ends no command
        if "--no-plugins" in args:
            from unittest.mock import patch

            from harness.registry.discovery import NO_PLUGINS

            context.with_resource(patch.dict(os.environ, {NO_PLUGINS: "1"}))  # it holds in every child process
        return context


def _refuse_empty(args: list[str]) -> None:
    """Refuse a word without content, such as that of a shell's unset variable: it would mean the current folder."""
    for position, word in enumerate(args):
        option = re.fullmatch(r"(--[\w-]+)=\s*", word)
        before = args[position - 1] if position else ""
        if option or not word.strip():
            name = option[1] if option else before if before.startswith("-") else "an argument"
            raise typer.BadParameter(f"{name} has no value, only an empty text")


@contextmanager
def errors_as_messages(*, debug: bool) -> Iterator[None]:
    """Turn the harness's own errors into a message and an exit code, and everything else into one line."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here, because at Python's exit nobody could say what went wrong
    except BenchError as error:
        if debug:
            traceback.print_exc()
        else:
            say(f"error: {error}")
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt as error:
        say(str(error) or "interrupted")
        raise SystemExit(getattr(error, "exit_code", INTERRUPTED)) from None
    except Exception as error:
        if debug or isinstance(error, BrokenPipeError) or type(error).__module__.startswith(("typer", "click")):
            raise
        full = isinstance(error, OSError) and error.errno in DISK_FULL
        if full:
            _discard_output()
        if isinstance(error, OSError) and (full or error.filename is not None):
            say(f"error: {'cannot write' if full else error.filename}: {error.strerror}")
            raise SystemExit(UserError.exit_code) from None
        say(f"internal error: {type(error).__name__}: {error} (--debug shows where)")
        raise SystemExit(1) from None


def _discard_output() -> None:
    """Discard what is still buffered, so that Python's exit does not fail on it again."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


app = typer.Typer(
    cls=Guarded,
    name="bench",
    help="Benchmark out-of-distribution graph classification: run a suite, read the table.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(shown: bool) -> None:
    if shown:
        print(f"bench {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; allowed anywhere on the line.")] = False,
    no_plugins: Annotated[
        bool,
        typer.Option(
            "--no-plugins",
            help="Run no code of suites or installed plugins, also BENCH_NO_PLUGINS=1; allowed anywhere on the line.",
        ),
    ] = False,
) -> None:
    del version, debug, no_plugins


_COMMANDS: Commands = {
    "run": run,
    "plan": plan,
    "validate": validate,
    "report": report,
    "compare": compare,
    "compare-to-record": compare_to_record,
    "export": export,
    "runs": runs,
    "analyse": analyse,
    "reproduce": reproduce,
    "debug": debug,
    "profile": profile,
    "list": list_components,
    "describe": describe,
    "check": check,
    "new": new,
    "schema": schema,
    "doctor": doctor,
}
register(app, _COMMANDS)
for _name, _help, _commands in (
    ("data", "See, fetch and check datasets and their files.", DATA_COMMANDS),
    ("cache", "Look at the store of cached results and make room.", CACHE_COMMANDS),
):
    _group = typer.Typer(help=_help, no_args_is_help=True, rich_markup_mode=None)
    register(_group, _commands)
    app.add_typer(_group, name=_name)

main = partial(app, prog_name="bench")
"""Entry point of the ``bench`` script; takes the words of the command line, those of the process where absent."""
