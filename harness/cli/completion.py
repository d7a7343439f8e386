"""What a shell offers after Tab: suites, components, runs, cells, rows and columns. No torch, and never an error.

Typer calls a function with the context and the word so far. Nothing is built or imported for an answer: components are
those that the index already knows, runs those of the store.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import SupportsIndex

import typer

from harness.component import KINDS
from harness.errors import UserError
from harness.safe_io import visible

Offer = tuple[str, str]
"""A word, and a few words on it."""
Source = Callable[[typer.Context, str], Iterable[Offer]]
Completion = Callable[[typer.Context, str], list[Offer]]

_MOST = 200
_MOST_FILES = 2000
_RECENT = 3
_SPECIAL = re.compile(r"([^\w@%+=:,./-])")


def _offered(source: Source) -> Completion:
    """The offers that begin with the word so far, in words of the shell; what was found before anything went wrong."""

    def complete(ctx: typer.Context, incomplete: str) -> list[Offer]:
        found: dict[str, str] = {}
        with suppress(Exception, SystemExit):  # whatever it is, a shell has no use for it
            for word, told in source(ctx, incomplete):
                if word.startswith(incomplete) and len(found) < _MOST:
                    found.setdefault(_word(word), visible(told))
        return list(found.items())

    complete.__doc__ = source.__doc__
    return complete


class _Escaped(str):
    """A word as bash must be given it. Typer compares it with what was typed so far, which is not escaped."""

    _plain: str

    def __new__(cls, plain: str) -> _Escaped:
        made = super().__new__(cls, _SPECIAL.sub(r"\\\1", plain))
        made._plain = plain
        return made

    def startswith(self, prefix: str | tuple[str, ...], *bounds: SupportsIndex | None) -> bool:
        """Whether the plain word does."""
        return self._plain.startswith(prefix, *bounds)


def _word(text: str) -> str:
    """As it must be typed: bash puts in what it is given, the other shells quote by themselves."""
    return text if os.environ.get("_BENCH_COMPLETE") != "complete_bash" or _quoted() else _Escaped(text)


def _quoted() -> bool:
    """Whether the word so far begins with a quote, within which nothing is escaped."""
    words = os.environ.get("COMP_WORDS", "").split("\n")
    place = int(os.environ.get("COMP_CWORD", "0"))
    return words[place : place + 1] != [] and words[place].startswith(("'", '"'))


def one_of(*words: str) -> Completion:
    """A completion that offers some words."""
    return _offered(lambda _, __: ((word, "") for word in words))


@_offered
def suites(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
    """Suite files near by, then installed suites by name."""
    yield from _suites(incomplete)


def _suites(incomplete: str) -> Iterator[Offer]:
    yield from ((str(path), "") for path in _files(incomplete, ".yaml", ".yml"))
    from harness.suite.files import installed_suites

    yield from ((name, "installed suite") for name in installed_suites())


def _files(incomplete: str, *endings: str) -> Iterator[Path]:
    """Files in the folder that the word leads to and two folders below, hidden ones left out."""
    head = incomplete.rpartition("/")[0]
    folder = Path("/" if incomplete.startswith("/") and not head else head or ".").expanduser()
    patterns = ("*", "*/*", "*/*/*")
    seen = islice((path for pattern in patterns for path in folder.glob(pattern)), _MOST_FILES)
    for path in sorted(seen):
        inner = path.relative_to(folder)
        if path.suffix in endings and not any(part.startswith(".") for part in inner.parts):
            yield Path(head) / inner


@_offered
def components(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Names of components, or ``KIND/NAME`` once a kind is typed."""
    yield from _components(ctx, incomplete)


def _components(ctx: typer.Context, incomplete: str, kinds: Sequence[str] = KINDS) -> Iterator[Offer]:
    from harness.registry.index import known_entries

    long = "/" in incomplete
    for kind, name, summary in known_entries(ctx.params.get("plugin") or ()):
        if kind in kinds:
            yield (f"{kind}/{name}" if long else name), (summary if len(kinds) == 1 else f"{kind}: {summary}")


@_offered
def checkable(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Components, and Python files near by."""
    yield from _components(ctx, incomplete)
    yield from ((str(path), "") for path in _files(incomplete, ".py"))


@_offered
def dataset_components(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Names of dataset components."""
    yield from _components(ctx, incomplete, ("dataset",))


@_offered
def analyses(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Names of analysis components."""
    yield from _components(ctx, incomplete, ("analysis",))


@_offered
def trackers(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Names of tracker components."""
    yield from _components(ctx, incomplete, ("tracker",))


@_offered
def kinds(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
    """Kinds of components."""
    yield from ((kind, "") for kind in (*KINDS, "suites"))


@_offered
def plugin_files(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
    """Python files near by."""
    yield from ((str(path), "") for path in _files(incomplete, ".py"))


@_offered
def runs(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Suites that have runs, ids of runs, the latest first, and other suites."""
    folders = _run_folders(ctx)
    yield from ((name, "its latest run") for name in dict.fromkeys(map(_suite_of, folders[:_MOST])) if name)
    yield from ((path.name, "run") for path in folders)
    yield from _suites(incomplete)


def _suite_of(folder: Path) -> str:
    """The name of a run's suite, or nothing; from the head of its suite file, as a record may be large."""
    import yaml

    try:
        with (folder / "suite.yaml").open(encoding="utf-8") as file:
            return str(yaml.safe_load(file.read(1000).partition("\nprotocol:")[0])["name"])
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return ""


@_offered
def cells(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
    """Ids of the cells of the latest runs."""
    yield from _cells(ctx)


@_offered
def cells_or_suites(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Ids of cells, and suites."""
    yield from _cells(ctx)
    yield from _suites(incomplete)


def _run_folders(ctx: typer.Context) -> list[Path]:
    from harness.store import store_root

    root = ctx.params.get("store") or store_root()
    return sorted((Path(root).expanduser() / "runs").glob("*/"), reverse=True)


def _cells(ctx: typer.Context) -> Iterator[Offer]:
    import json

    records = [folder / "run.json" for folder in _run_folders(ctx)]
    for record in [path for path in records if path.is_file()][:_RECENT]:
        for cell in json.loads(record.read_text(encoding="utf-8"))["cells"]:
            chosen = "" if cell["config_id"] == "-" else f" ({cell['config_id']})"
            yield cell["id"], f"{cell['method']}{chosen} on {cell['dataset']}, seed {cell['seed']}"


@_offered
def dataset_labels(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
    """Columns of the suite on the line."""
    yield from ((label, "") for label in _labels(ctx, "datasets"))


@_offered
def method_labels(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
    """Rows of the suite on the line."""
    yield from ((label, "") for label in _labels(ctx, "methods"))


def _labels(ctx: typer.Context, section: str) -> Iterable[str]:
    """Labels of a suite's datasets or methods, fragments included, read without looking at anything else."""
    from harness.suite.files import find_suite, gather
    from harness.suite.tree import Problems

    given = [ctx.params.get(name) for name in ("suite", "cell", "run")]
    for word in filter(None, [*given, *_words()]):
        with suppress(UserError):
            return gather(find_suite(word), Problems()).tree.table(section)
    return ()


def _words() -> list[str]:
    """The words of the line after the command: an option that waits for its value hides the arguments before it."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        words = shlex.split(line)
    except ValueError:  # within quotes
        words = line.split()
    return [word for word in words[2:] if not word.startswith("-")]
