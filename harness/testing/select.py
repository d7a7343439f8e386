"""Choose the components to check. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.errors import UserError, did_you_mean
from harness.registry.catalog import Entry
from harness.registry.index import load_catalog


def find(names: Sequence[str], plugins: Sequence[Path] = ()) -> list[Entry]:
    """Return the components named by ``NAME``, ``KIND/NAME`` or the path of a plugin file; without names, all.

    Raises:
        UserError: a name or file is not there, or a plugin cannot be loaded.
    """
    files = [Path(name) for name in names if _is_file(name)]
    entries = list(load_catalog([*plugins, *files]))
    if not names:
        return entries
    entries_by_name: dict[tuple[str, str], Entry] = {}
    for name in names:
        chosen = _by_file(entries, Path(name)) if _is_file(name) else _by_name(entries, name)
        entries_by_name |= {(entry.kind, entry.name): entry for entry in chosen}
    return list(entries_by_name.values())


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
