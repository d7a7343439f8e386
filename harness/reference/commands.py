"""The command line as a page: each command with what its ``--help`` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.reference.markdown import escaped, table

WIDTH = 100
"""Columns of the help texts."""


def command_line() -> Any:
    """The whole command line, as one object of the library that parses it."""
    import typer

    from harness.cli import commands  # noqa: F401 - registers them
    from harness.cli.main import app

    return typer.main.get_command(app)


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its words, such as ``bench data fetch``, by name; groups before what they hold."""
    yield from _below(command_line(), "bench")


def _below(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, command
    for word, inner in sorted(getattr(command, "commands", {}).items()):
        if not inner.hidden:
            yield from _below(inner, f"{name} {word}")


def help_text(name: str, command: Any) -> str:
    """What ``NAME --help`` prints on a terminal of :data:`WIDTH` columns."""
    context = command.context_class(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    return str(command.get_help(context))


def page() -> str:
    """The page of all commands."""
    found = list(commands())
    rows = [[f"[`{name}`](#{anchor(name)})", escaped(command.get_short_help_str(WIDTH))] for name, command in found]
    parts = [
        "# Command line",
        "What each command prints with `--help`. Exit codes, engines and the store are in "
        "[Run, resume, export](../running.md#exit-codes).",
        table(["command", "does"], rows[1:]),
    ]
    for name, command in found:
        parts.append(f"## {name} {{ #{anchor(name)} }}\n\n```text\n{help_text(name, command).strip()}\n```")
    return "\n\n".join(parts) + "\n"


def anchor(name: str) -> str:
    """Where on the page a command stands."""
    return name.replace(" ", "-")
