"""The torch-free index of components: built in a child process, kept on disk, checked against the files' bytes."""

from __future__ import annotations

import hashlib
import json
import os
import select
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness._version import __version__
from harness.catalog import BrokenPlugin, Catalog, Entry
from harness.errors import UserError
from harness.folders import index_root
from harness.registry import Source, all_sources, refuse_duplicates
from harness.source import closure, room_files

FORMAT = 1
TIME_LIMIT = 60.0
"""Seconds that importing one plugin may take."""


def load_catalog(plugin_files: Sequence[Path] = (), *, strict: bool = False, time_limit: float = TIME_LIMIT) -> Catalog:
    """All components that are registered.

    Args:
        plugin_files: single files that a suite or the command line names.
        strict: a plugin that cannot be loaded is an error.
        time_limit: seconds that importing one plugin may take.

    Raises:
        UserError: two plugins register one name; a named file cannot be loaded; with ``strict``, any plugin.
    """
    sources, missing = all_sources(plugin_files)
    cache = _Cache()
    known = {source: cache.read(source) for source in sources}
    built = build([source for source, entries in known.items() if entries is None], time_limit)
    broken = [BrokenPlugin(name, "", reason) for name, reason in missing.items()]
    entries: list[Entry] = []
    for source in sources:
        found = known[source] if known[source] is not None else built[source]
        if isinstance(found, BrokenPlugin):
            broken.append(found)
            continue
        entries += found or []
        if known[source] is None:
            cache.write(source, found or [])
    _report(broken, [source for source in sources if source.single], strict)
    refuse_duplicates(entries)
    return Catalog(entries, broken)


def _report(broken: Iterable[BrokenPlugin], named: Iterable[Source], strict: bool) -> None:
    files = {str(source.file) for source in named}
    fatal = [item for item in broken if strict or item.file in files]
    if fatal:
        raise UserError("\n".join(f"plugin {item.plugin} cannot be loaded: {item.reason}" for item in fatal))


class _Cache:
    """One JSON file per plugin, valid while every file it depends on has the same bytes."""

    def __init__(self) -> None:
        self._folder = index_root()
        self._digests: dict[str, str] = {}

    def _path(self, source: Source) -> Path:
        parts = (source.module, str(source.file), sys.version, __version__, FORMAT)
        return self._folder / f"{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}.json"

    def _digest(self, file: str) -> str:
        if file not in self._digests:
            try:
                self._digests[file] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
            except OSError:
                self._digests[file] = ""
        return self._digests[file]

    def read(self, source: Source) -> list[Entry] | None:
        """The entries, or None where they must be built."""
        try:
            data = json.loads(self._path(source).read_text(encoding="utf-8"))
            if any(self._digest(file) != digest for file, digest in data["files"].items()):
                return None
            return [Entry.from_json({**item, "plugin": source.plugin}) for item in data["entries"]]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, source: Source, entries: Sequence[Entry]) -> None:
        """Keep the entries; a folder that cannot be written only costs time."""
        try:
            files = closure(source.file, source.base).union(*(closure(Path(e.file), source.base) for e in entries))
        except (OSError, ValueError, SyntaxError):
            return
        files = files.union(*(room_files(entry.kind) for entry in entries))
        data = {
            "files": {str(file): self._digest(str(file)) for file in sorted(files)},
            "entries": [entry.to_json() for entry in entries],
        }
        path = self._path(source)
        part = path.with_suffix(f".{os.getpid()}-{uuid.uuid4().hex[:6]}.part")
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(data, sort_keys=True), encoding="utf-8")
            part.replace(path)


def build(sources: Sequence[Source], time_limit: float = TIME_LIMIT) -> dict[Source, list[Entry] | BrokenPlugin]:
    """Import plugins in child processes and describe their components.

    A plugin that outlives the time limit, or takes its process down, is broken; a new process goes on with the rest.
    """
    found: dict[Source, list[Entry] | BrokenPlugin] = {}
    waiting = list(sources)
    while waiting:
        waiting = _build_some(waiting, found, time_limit)
    return found


def _build_some(
    sources: list[Source], found: dict[Source, list[Entry] | BrokenPlugin], time_limit: float
) -> list[Source]:
    """One child process; returns what it did not come to."""
    request = json.dumps([{k: str(v) for k, v in vars(source).items()} for source in sources])
    child = subprocess.Popen(
        [sys.executable, "-m", "harness.index_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        child.stdin.write(request)
        child.stdin.close()
        for position, source in enumerate(sources):
            line = _read_line(child, time_limit)
            if line is None:
                ended = child.poll() is not None
                child.kill()
                reason = "it took its process down" if ended else f"importing it took more than {time_limit:g} s"
                found[source] = BrokenPlugin(source.plugin, str(source.file), reason)
                return sources[position + 1 :]
            found[source] = _parse(source, json.loads(line))
    return []


def _read_line(child: subprocess.Popen[str], time_limit: float) -> str | None:
    """The next line, or None at the end of the stream or of the time."""
    assert child.stdout is not None
    until = time.monotonic() + time_limit
    ready, _, _ = select.select([child.stdout], [], [], max(until - time.monotonic(), 0))
    line = child.stdout.readline() if ready else ""
    return line if line.endswith("\n") else None


def _parse(source: Source, answer: Mapping[str, Any]) -> list[Entry] | BrokenPlugin:
    if "reason" in answer:
        return BrokenPlugin(source.plugin, str(source.file), answer["reason"])
    return [Entry.from_json(item) for item in answer["entries"]]
