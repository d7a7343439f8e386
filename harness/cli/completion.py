"""Shell completion of suites, components and runs. No torch, and never an error.

Typer completes commands and options, calls these functions with the context and the word so far, and leaves files to
the shell. Nothing is built for an answer: components are those that the index knows, runs those of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import typer

from harness.component import KINDS
from harness.safe_io import visible

Offer = tuple[str, str]
"""A word, and its explanation."""
Source = Callable[[typer.Context, str], Iterable[Offer]]

_MOST = 200


def _offering(*sources: Source) -> Callable[[typer.Context, str], list[Offer]]:
    """Return a completion that offers the words of the sources that begin with the word so far."""

    def complete(ctx: typer.Context, incomplete: str) -> list[Offer]:
        offers: dict[str, str] = {}
        with suppress(Exception, SystemExit):  # whatever it is, a shell has no use for it
            for source in sources:
                for word, about in source(ctx, incomplete):
                    if word.startswith(incomplete) and len(offers) < _MOST:
                        offers.setdefault(word, visible(about))
        return list(offers.items())

    return complete


def _suites(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
    from harness.suite.files import installed_suites

    yield from ((name, "installed suite") for name in installed_suites())


def _components(kinds: Sequence[str] = KINDS) -> Source:
    """Return the names of components, or ``KIND/NAME`` once a kind is typed."""

    def source(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
        from harness.registry.index import known_entries

        for kind, name, summary in known_entries(ctx.params.get("plugin") or ()):
            if kind in kinds:
                yield (f"{kind}/{name}" if "/" in incomplete else name), f"{kind}: {summary}"

    return source


def _runs(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:  # noqa: ARG001
    from harness.store.folders import store_root

    root = Path(ctx.params.get("store") or store_root()).expanduser()
    yield from ((path.name, "run") for path in sorted((root / "runs").glob("*/"), reverse=True))


complete_suites = _offering(_suites)
complete_runs = _offering(_runs, _suites)
complete_components = _offering(_components())
complete_dataset_components = _offering(_components(["dataset"]))
complete_analyses = _offering(_components(["analysis"]))
complete_trackers = _offering(_components(["tracker"]))
