"""``bench new``: a working component to start from."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import options


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What it is: baseline, dataset, encoder …")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in suites, such as my-method.")],
    package: Annotated[bool, typer.Option("--package", help="A distribution to install, not a single file.")] = False,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where to write; made if it is not there.")
    ] = Path(),
    plugin: options.Plugins = None,
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
    """A path as one would type it here."""
    short = os.path.relpath(path)
    return shlex.quote(str(path.absolute()) if short.startswith("..") else short)
