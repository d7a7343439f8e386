"""What must be equal on all machines of a run, so that a key means the same everywhere. No torch, no Dask."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from harness.engine.provenance import versions
from harness.errors import UserError
from harness.registry.core_files import HARNESS, PLUGINS
from harness.registry.discovery import Source, distribution_sources, file_source
from harness.registry.source_digest import own_digest
from harness.store import hash_file

CODE = "the code of bench"
_AT_WORK = ("engine", "graphs", "nn", "stages", "storage", "training")
"""Folders of the core whose code runs stages, as does that of its top folder, and not that of commands and reports."""


def facts(plugin_files: Iterable[Path] = ()) -> dict[str, str]:
    """Versions, and digests of all code that can enter a key or make a result.

    Our own code counts by its files' bytes, plugins by their source digest. What is absent is not in it.
    """
    found = {**versions(), CODE: _files_digest(_files())}
    sources = distribution_sources()[0]
    for path in plugin_files:
        with suppress(UserError):
            sources.append(file_source(path))
    for source in sources:
        found[f"plugin {source.plugin}"] = _plugin_digest(source)
    return found


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """What a worker has that differs from ``here``, in words; what only the worker has does not matter."""
    told = []
    for name, mine in here.items():
        theirs = there.get(name)
        if theirs == mine:
            continue
        if theirs is None:
            told.append(f"{name} is not there")
        elif name == CODE or name.startswith("plugin "):
            told.append(f"{name} differs")
        else:
            told.append(f"{name} {theirs} instead of {mine}")
    return told


def _plugin_digest(source: Source) -> str:
    try:
        return own_digest(source.file, source.roots())
    except (OSError, SyntaxError) as error:
        return f"unreadable: {error}"


def _files() -> list[Path]:
    folders = [*(HARNESS / name for name in _AT_WORK), PLUGINS]
    return [*HARNESS.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]


def _files_digest(files: Iterable[Path]) -> str:
    named = sorted((path.relative_to(HARNESS.parent).as_posix(), hash_file(path)) for path in files)
    return hashlib.sha256("\n".join(map(" ".join, named)).encode()).hexdigest()
