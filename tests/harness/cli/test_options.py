"""Groups of options: declared once, and the same wherever a command takes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from harness.cli import options
from harness.cli.main import app

SUITE_OPTIONS = {"seeds", "epochs", "sets", "datasets", "methods", "strict", "data_dir", "plugin", "store"}
OPEN_A_SUITE = ("run", "plan", "validate", "debug", "profile")


def commands(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for word, inner in getattr(command, "commands", {}).items():
        yield f"{name} {word}".strip(), inner
        yield from commands(inner, f"{name} {word}")


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", OPEN_A_SUITE)
def test_every_command_that_opens_a_suite_takes_the_same_options(name: str) -> None:
    assert {parameter.name for parameter in COMMANDS[name].params} >= SUITE_OPTIONS


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_has_help_and_a_list_of_commands_shows_it_whole(name: str) -> None:
    """Sentences of twice the width of a terminal were cut in the middle."""
    assert not COMMANDS[name].get_short_help_str(63).endswith("...")
    assert "--help" in CliRunner().invoke(app, [*name.split(), "--help"]).stdout


def test_an_option_has_one_meaning() -> None:
    """Options of one name that come from a group are the same in each command."""
    groups = (options.Folders, options.SuiteOptions, options.Workers)
    shared = {field.name for group in groups for field in fields(group)} - {"sets", "jobs"}
    seen: dict[str, set[tuple[str, ...]]] = {}
    for command in COMMANDS.values():
        for parameter in command.params:
            if parameter.name in shared:
                seen.setdefault(parameter.name, set()).add((*parameter.opts, parameter.help))
    assert {name: len(forms) for name, forms in seen.items()} == dict.fromkeys(shared, 1)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("runs", "--store", ""), "--store"),
        (("runs", "--store= "), "--store"),
        (("export", "a", "-o", ""), "-o"),
        (("cache", "push", ""), "an argument"),
    ],
)
def test_an_empty_text_is_no_folder(words: tuple[str, ...], named: str) -> None:
    """An unset variable of a shell made a store of the current folder."""
    told = CliRunner().invoke(app, words)
    assert (told.exit_code, told.stdout) == (2, "")
    assert f"{named} has no value, only an empty text" in told.stderr


def test_a_group_arrives_as_an_object() -> None:
    arrived: list[Any] = []

    def command(name: str, folders: options.Folders, workers: options.Workers, count: int = 2) -> None:
        arrived.extend([name, folders, workers, count])

    group = typer.Typer()
    options.register(group, {"command": command})
    words = ["x", "--store", "here", "--plugin", "a.py", "--plugin", "b.py", "--jobs", "3", "--count", "5"]
    assert CliRunner().invoke(group, words, env={"BENCH_DATA": None}).exit_code == 0
    folders = options.Folders(plugin=[Path("a.py"), Path("b.py")], store=Path("here"))
    assert arrived == ["x", folders, options.Workers(jobs=3), 5]
