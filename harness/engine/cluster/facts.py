"""What must be equal on all machines of a run, so that a key means the same everywhere. No torch, no Dask."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from harness.errors import UserError
from harness.importing import plugins_folder
from harness.keys import hash_file
from harness.provenance import versions
from harness.registry import Source, distribution_sources, file_source
from harness.source import HARNESS, own_digest

CODE = "the code of bench"


def facts(plugin_files: Iterable[Path] = ()) -> dict[str, str]:
    """Versions, and digests of all code that can enter a key or make a result.

    Our own code counts by its files' bytes, plugins by their source digest. What is absent is not in it.
    """
    found = {**versions(), CODE: _files_digest([HARNESS, plugins_folder()])}
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


def _files_digest(folders: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            total.update(f"{path.relative_to(folder.parent).as_posix()} {hash_file(path)}\n".encode())
    return total.hexdigest()
