"""The torch-free index of components: built in a child process, kept on disk, checked against the files' bytes."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from harness import __version__
from harness.component import KINDS
from harness.errors import UserError, did_you_mean
from harness.registry.catalog import BrokenPlugin, Catalog, Entry
from harness.registry.core_files import HARNESS, core_files
from harness.registry.discovery import Source, all_sources, allowed, origin, refuse_duplicates
from harness.registry.source_digest import component_digest, core_digest
from harness.safe_io import write_text
from harness.store import hash_file, index_root

_log = logging.getLogger(__name__)
FORMAT = 5
TIME_LIMIT = 60.0
"""Seconds that importing one plugin may take."""


def load_catalog(
    plugin_files: Sequence[Path] = (),
    *,
    suite_files: Sequence[Path] = (),
    strict: bool = False,
) -> Catalog:
    """Return the catalog of all registered components.

    Only plugins that changed since they were last read are imported, in a child process; one that cannot be loaded
    is tried again every time.

    Args:
        plugin_files: single files that the command line names.
        suite_files: single files that a suite names; it is for the suite's reader to say where it names one that cannot
            be loaded.
        strict: a plugin that cannot be loaded is an error.

    Raises:
        UserError: two plugins register one name; a named file cannot be loaded; with ``strict``, any plugin.
    """
    sources, missing = all_sources([*suite_files, *plugin_files])
    sources, withheld = allowed(sources, plugin_files)
    cache = _Cache()
    known = {source: entries for source in sources if (entries := cache.read(source)) is not None}
    broken = [BrokenPlugin(name, "", reason) for name, reason in missing.items()]
    unknown = [source for source in sources if source not in known]
    if unknown:
        from harness.registry.index_build import build

        for source, answer in build(unknown, TIME_LIMIT).items():
            if "reason" in answer:
                broken.append(BrokenPlugin(source.plugin, str(source.file), answer["reason"]))
            else:
                cache.write(source, answer["entries"], answer["files"])
                known[source] = [Entry.from_json(item) for item in answer["entries"]]
    _report(broken, plugin_files, suite_files, strict)
    entries = [
        replace(entry, digest=component_digest(entry.digest, cache.core_digests[entry.kind]))
        for source in sources
        for entry in known.get(source, ())
    ]
    refuse_duplicates(entries)
    return Catalog(entries, broken, withheld, cache.core_files)


def known_entries(plugin_files: Iterable[Path] = ()) -> list[tuple[str, str, str]]:
    """Return kind, name and summary of the components in the index, which may be out of date.

    Nothing is imported, built or checked against the files: for a shell's completion, which must be quick.
    """
    cache = _Cache()
    stored = [cache.read(source, valid=False) for source in all_sources(list(plugin_files))[0]]
    return [(entry.kind, entry.name, entry.summary) for entries in stored for entry in entries or ()]


def _report(broken: Iterable[BrokenPlugin], named: Iterable[Path], of_suite: Iterable[Path], strict: bool) -> None:
    files, others = ({str(path.resolve()) for path in paths} for paths in (named, of_suite))
    fatal = [item for item in broken if item.file in files or (strict and item.file not in others)]
    if fatal:
        told = [f"plugin {origin(item.plugin, item.file)} cannot be loaded: {item.reason}" for item in fatal]
        raise UserError("\n".join(told))


class _Cache:
    """One JSON file per plugin, valid while every file on which it depends has the same bytes.

    A folder that cannot be written only costs time, which is told once.
    """

    def __init__(self) -> None:
        self._folder = index_root()
        self._hashes: dict[str, str] = {}
        self._told = False

    def _path(self, *identity: str) -> Path:
        parts = (*identity, sys.version, __version__, FORMAT, str(HARNESS))
        return self._folder / f"{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}.json"

    def _hash(self, file: str) -> str:
        if file not in self._hashes:
            try:
                self._hashes[file] = hash_file(Path(file))
            except OSError:
                self._hashes[file] = ""
        return self._hashes[file]

    def _load(self, *identity: str, valid: bool = True) -> Any:
        """Return the content of a file of the cache if it is still valid, else None."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            data = json.loads(self._path(*identity).read_text(encoding="utf-8"))
            if not valid or all(self._hash(file) == known for file, known in data["files"].items()):
                return data["content"]
        return None

    def _save(self, content: Any, files: Mapping[str, str], *identity: str) -> None:
        try:
            write_text(self._path(*identity), json.dumps({"files": dict(files), "content": content}))
        except OSError as error:
            if not self._told:
                _log.warning(
                    "%s cannot be written (%s), so that every command reads all components anew, which is slow; "
                    "BENCH_CACHE names another folder",
                    self._folder,
                    error.strerror,
                )
            self._told = True

    def read(self, source: Source, *, valid: bool = True) -> list[Entry] | None:
        """Return a plugin's entries, or None if they must be built; with ``valid=False`` also those out of date."""
        items = self._load(source.module, str(source.file), valid=valid)
        with suppress(KeyError, TypeError, AttributeError):
            return None if items is None else [Entry.from_json({**item, "plugin": source.plugin}) for item in items]
        return None

    def write(self, source: Source, entries: Any, files: Mapping[str, str]) -> None:
        """Store a plugin's entries, as JSON, with the hashes of the files on which they depend."""
        self._save(entries, files, source.module, str(source.file))

    @property
    def core_files(self) -> dict[str, str]:
        """Path below the core -> SHA-256 of each of the core files."""
        return {os.path.relpath(file, HARNESS): self._hash(file) for file in _all_core_files()}

    @cached_property
    def core_digests(self) -> Mapping[str, str]:
        """Kind -> the digest of the core files on which its components depend."""
        files = _all_core_files()
        stored: Mapping[str, str] | None = self._load("core_files", *files)
        if not isinstance(stored, dict):
            hashes = {file: self._hash(file) for file in files}
            stored = {kind: core_digest(kind) for kind in KINDS}
            self._save(stored, hashes, "core_files", *files)
        return stored


def _all_core_files() -> list[str]:
    return sorted({str(file) for kind in KINDS for file in core_files(kind)})


def find_components(names: Sequence[str], plugins: Sequence[Path] = ()) -> list[Entry]:
    """Return the components named by ``NAME``, ``KIND/NAME`` or the path of a plugin file; without names, all.

    Raises:
        UserError: a name or file is not there, or a plugin cannot be loaded.
    """
    files = [Path(name) for name in names if name.endswith(".py")]
    entries = list(load_catalog([*plugins, *files]))
    found = {(entry.kind, entry.name): entry for name in names for entry in _named(entries, name)}
    return list(found.values()) if names else entries


def _named(entries: Sequence[Entry], name: str) -> list[Entry]:
    if name.endswith(".py"):
        chosen = [entry for entry in entries if Path(entry.file) == Path(name).resolve()]
        fault = f"plugin file {name} registers no component of a kind that can be checked"
    else:
        kind, _, short = name.rpartition("/")
        chosen = [entry for entry in entries if entry.name == short and kind in ("", entry.kind)]
        hint = did_you_mean(short, sorted({entry.name for entry in entries}))
        fault = f"no component that can be checked is called '{name}'{hint}; `bench list` shows them"
    if not chosen:
        raise UserError(fault)
    return chosen
