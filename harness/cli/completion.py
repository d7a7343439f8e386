"""Shell completion of suites, components, runs, cells, rows and columns. No torch, and never an error.

Typer completes commands and options, and calls these functions with the context and the word so far. Nothing is built
or imported for an answer: components are those that the index already knows, runs those of the store.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import SupportsIndex

import typer

from harness.component import KINDS
from harness.errors import UserError
from harness.safe_io import visible

Offer = tuple[str, str]
"""A word, and its explanation."""
Source = Callable[[typer.Context, str], Iterable[Offer]]

_MOST = 200
_RECENT_RUNS = 3
_SPECIAL = re.compile(r"([^\w@%+=:,./-])")


def _offering(*sources: Source) -> Callable[[typer.Context, str], list[Offer]]:
    """Return a completion that offers the words of the sources that begin with the word so far."""

    def complete(ctx: typer.Context, incomplete: str) -> list[Offer]:
        offers: dict[str, str] = {}
        with suppress(Exception, SystemExit):  # whatever it is, a shell has no use for it
            for source in sources:
                for word, about in source(ctx, incomplete):
                    if word.startswith(incomplete) and len(offers) < _MOST:
                        offers.setdefault(_shell_word(word), visible(about))
        return list(offers.items())

    return complete


class _Escaped(str):
    """A word escaped for bash. Typer compares it with the word so far, which is not escaped."""

    _plain: str

    def __new__(cls, plain: str) -> _Escaped:
        word = super().__new__(cls, _SPECIAL.sub(r"\\\1", plain))
        word._plain = plain
        return word

    def startswith(self, prefix: str | tuple[str, ...], *bounds: SupportsIndex | None) -> bool:
        """Return True if the plain word starts with the prefix."""
        return self._plain.startswith(prefix, *bounds)


def _shell_word(text: str) -> str:
    """Return a word as the shell needs it: bash inserts it as it is, unless within a quote; others quote themselves."""
    if os.environ.get("_BENCH_COMPLETE") != "complete_bash":
        return text
    words, place = os.environ.get("COMP_WORDS", "").split("\n"), int(os.environ.get("COMP_CWORD", "0"))
    quoted = any(word.startswith(("'", '"')) for word in words[place : place + 1])
    return text if quoted else _Escaped(text)


def one_of(*words: str) -> Callable[[typer.Context, str], list[Offer]]:
    """Return a completion that offers some words."""
    return _offering(lambda _, __: ((word, "") for word in words))


def _files(*endings: str) -> Source:
    """Return the files with these endings in the folder that the word leads to."""

    def source(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
        head = incomplete.rpartition("/")[0]
        folder = Path("/" if incomplete.startswith("/") and not head else head or ".").expanduser()
        names = sorted(path.name for path in folder.glob("*") if path.suffix in endings)
        yield from ((str(Path(head) / name), "") for name in names)

    return source


def _installed_suites(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
    from harness.suite.files import installed_suites

    yield from ((name, "installed suite") for name in installed_suites())


def _components(kinds: Sequence[str] = KINDS) -> Source:
    """Return the names of components, or ``KIND/NAME`` once a kind is typed."""

    def source(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
        from harness.registry.index import known_entries

        with_kind = "/" in incomplete
        for kind, name, summary in known_entries(ctx.params.get("plugin") or ()):
            if kind in kinds:
                yield (f"{kind}/{name}" if with_kind else name), (summary if len(kinds) == 1 else f"{kind}: {summary}")

    return source


def _run_folders(ctx: typer.Context) -> list[Path]:
    from harness.store.folders import store_root

    root = Path(ctx.params.get("store") or store_root()).expanduser()
    return sorted((root / "runs").glob("*/"), reverse=True)


def _runs(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
    """Return the suites that have runs, then the ids of runs, the latest first."""
    folders = _run_folders(ctx)
    yield from ((name, "its latest run") for name in dict.fromkeys(map(_suite_of, folders[:_MOST])) if name)
    yield from ((path.name, "run") for path in folders)


def _suite_of(folder: Path) -> str:
    """Return the name of a run's suite, or nothing; from the head of its suite file, as a record may be large."""
    import yaml

    try:
        with (folder / "suite.yaml").open(encoding="utf-8") as file:
            return str(yaml.safe_load(file.read(1000).partition("\nprotocol:")[0])["name"])
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return ""


def _cells(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
    """Return the ids of the cells of the latest runs."""
    records = [folder / "run.json" for folder in _run_folders(ctx)]
    for record in [path for path in records if path.is_file()][:_RECENT_RUNS]:
        for cell in json.loads(record.read_text(encoding="utf-8"))["cells"]:
            configuration = "" if cell["config_id"] == "-" else f" ({cell['config_id']})"
            yield cell["id"], f"{cell['method']}{configuration} on {cell['dataset']}, seed {cell['seed']}"


def _labels(section: str) -> Source:
    """Return the labels of the datasets or methods of the suite on the line, fragments included."""

    def source(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
        from harness.suite.files import find_suite, gather
        from harness.suite.tree import Problems

        candidates = [ctx.params.get(name) for name in ("suite", "cell", "run")]
        for word in filter(None, [*candidates, *_words()]):
            with suppress(UserError):
                yield from ((label, "") for label in gather(find_suite(word), Problems()).tree.table(section))
                return

    return source


def _words() -> list[str]:
    """Return the words of the line after the command: an option without its value hides the arguments before it."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        words = shlex.split(line)
    except ValueError:  # within quotes
        words = line.split()
    return [word for word in words[2:] if not word.startswith("-")]


_SUITES = (_files(".yaml", ".yml"), _installed_suites)
complete_suites = _offering(*_SUITES)
complete_runs = _offering(_runs, *_SUITES)
complete_cells = _offering(_cells)
complete_cells_or_suites = _offering(_cells, *_SUITES)
complete_dataset_labels = _offering(_labels("datasets"))
complete_method_labels = _offering(_labels("methods"))
complete_components = _offering(_components())
complete_components_or_files = _offering(_components(), _files(".py"))
complete_dataset_components = _offering(_components(["dataset"]))
complete_analyses = _offering(_components(["analysis"]))
complete_trackers = _offering(_components(["tracker"]))
complete_kinds = one_of(*KINDS, "suites")
