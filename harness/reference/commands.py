"""The command line as a page: each command with what its ``--help`` prints."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from harness.reference.markdown import escaped, table

WIDTH = 100
"""Columns of the help texts."""


@cache
def command_line() -> Any:
    """The whole command line, as one object of the library that parses it."""
    import typer

    from harness.cli import app

    return typer.main.get_command(app)


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by name: its words, such as ``bench data fetch``, and its context; groups before what they hold."""
    root = command_line()
    yield from _below(_context(root, "bench"))


def _below(context: Any) -> Iterator[tuple[str, Any]]:
    yield context.command_path, context
    for word, inner in sorted(getattr(context.command, "commands", {}).items()):
        if not inner.hidden:
            yield from _below(_context(inner, word, context))


def _context(command: Any, word: str, above: Any = None) -> Any:
    settings = {"terminal_width": WIDTH, "max_content_width": WIDTH, **command.context_settings}
    return command.context_class(command, parent=above, info_name=word, **settings)


def page() -> str:
    """The page of all commands."""
    found = list(commands())
    rows = [[f"[`{name}`](#{anchor(name)})", escaped(each.command.get_short_help_str(WIDTH))] for name, each in found]
    parts = [
        "# Command line",
        "What each command prints with `--help`. Exit codes, engines and the store are in "
        "[Run, resume, export](../running.md#exit-codes).",
        table(["command", "does"], rows[1:]),
    ]
    for name, each in found:
        parts.append(f"## {name} {{ #{anchor(name)} }}\n\n```text\n{each.get_help().strip()}\n```")
    return "\n\n".join(parts) + "\n"


def anchor(name: str) -> str:
    """Where on the page a command stands."""
    return name.replace(" ", "-")
