"""Which components to check, and checking several of them in processes. Imports torch only when a check runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from harness.catalog import Entry
from harness.errors import UserError, did_you_mean
from harness.index import load_catalog
from harness.testing.report import Report

CHECKED = ("baseline", "decorrelator", "encoder", "quantifier", "environment", "dataset", "backbone")
"""Kinds that have a contract to test."""


def find(names: Sequence[str], plugins: Sequence[Path] = ()) -> list[Entry]:
    """The components that are meant by ``NAME``, ``KIND/NAME`` or the path of a plugin file; without names, all.

    Raises:
        UserError: a name or file is not there, or a plugin cannot be loaded.
    """
    files = [Path(name) for name in names if _is_file(name)]
    catalog = load_catalog([*plugins, *files])
    entries = [entry for entry in catalog if entry.kind in CHECKED]
    if not names:
        return entries
    found: dict[tuple[str, str], Entry] = {}
    for name in names:
        chosen = _by_file(entries, Path(name)) if _is_file(name) else _by_name(entries, name)
        found |= {(entry.kind, entry.name): entry for entry in chosen}
    return list(found.values())


def _is_file(name: str) -> bool:
    return name.endswith(".py")


def _by_file(entries: Sequence[Entry], path: Path) -> list[Entry]:
    chosen = [entry for entry in entries if Path(entry.file) == path.resolve()]
    if not chosen:
        raise UserError(f"plugin file {path} registers no component of a kind that can be checked")
    return chosen


def _by_name(entries: Sequence[Entry], name: str) -> list[Entry]:
    kind, _, short = name.rpartition("/")
    chosen = [entry for entry in entries if entry.name == short and kind in ("", entry.kind)]
    if not chosen:
        hint = did_you_mean(short, sorted({entry.name for entry in entries}))
        raise UserError(f"no component that can be checked is called '{name}'{hint}; `bench list` shows them")
    return chosen


def check_entries(entries: Sequence[Entry], data_dir: Path | None = None, jobs: int = 1) -> Iterator[Report]:
    """A report for each component, in order; with several jobs, from as many processes."""
    if jobs == 1 or len(entries) == 1:
        yield from (check_entry(entry.to_json(), data_dir) for entry in entries)
        return
    with ProcessPoolExecutor(min(jobs, len(entries)), mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(check_entry, entry.to_json(), data_dir) for entry in entries]
        try:
            yield from (future.result() for future in futures)
        finally:
            for future in futures:
                future.cancel()


def check_entry(entry: dict[str, Any], data_dir: Path | None) -> Report:
    """Import a component and check it, on one thread."""
    import torch

    from harness.registry import load_one
    from harness.testing.run import check_component

    torch.set_num_threads(1)
    return check_component(load_one(Entry.from_json(entry)), data_dir)
