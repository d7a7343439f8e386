"""Orders for the workers of a run, and the facts that must be equal on all its machines. No torch, no Dask."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from harness.engine.contract import Job
from harness.engine.processes import PRELOAD
from harness.engine.provenance import versions
from harness.errors import UserError
from harness.registry.core_files import HARNESS, PLUGINS
from harness.registry.discovery import Source, distribution_sources, file_source
from harness.store import hash_file

CODE = "the code of bench"


@dataclass(frozen=True)
class Order:
    """The message to all workers of a run.

    Attributes:
        job: as for every worker, with paths as the workers see them.
        timeout, memory: limits of a stage, in seconds and bytes.
        logs: folder for what is printed in stages, a file per Dask worker; their own output where absent.
        expected: what :func:`facts` says where the run was started.
        plugin_files: single-file plugins that the run may use.
        meeting: folder in the store in which the run left the file ``token`` with ``secret`` in it, and in which each
            worker leaves a file, so that both sides know that they see the same store; ``None`` for no such check.
        secret: see ``meeting``.
        environment: variables of the processes that run stages.
        preload: modules that each of these processes loads first.
    """

    job: Job
    timeout: float | None = None
    memory: int | None = None
    logs: Path | None = None
    expected: Mapping[str, str] = field(default_factory=dict)
    plugin_files: Sequence[Path] = ()
    meeting: Path | None = None
    secret: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    preload: Sequence[str] = PRELOAD


def facts(plugin_files: Iterable[Path] = ()) -> dict[str, str]:
    """Versions, and digests of all code that can enter a key or make a result.

    Our own code counts by its files' bytes, plugins by their source digest. What is absent is not in it.
    """
    found = {**versions(), CODE: _code_digest()}
    sources = distribution_sources()[0]
    for path in plugin_files:
        with suppress(UserError):
            sources.append(file_source(path))
    for source in sources:
        found[f"plugin {source.plugin}"] = _plugin_digest(source)
    return found


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """Return the differences of a worker in words; things that only the worker has do not matter."""
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


def look_around(line: Connection, order: Order, name: str) -> None:
    """Send what is wrong on this machine: other code or versions, or another store. Runs in a child process."""
    complaints = differences(order.expected, facts(order.plugin_files)) if order.expected else []
    if order.meeting is not None:
        store = order.meeting.parent.parent
        try:
            if (order.meeting / "token").read_text(encoding="utf-8") != order.secret:
                complaints.append(f"{store} is another store")
            (order.meeting / f"{name}-{os.getpid()}").touch()
        except OSError as error:
            complaints.append(f"it cannot use the store at {store}: {error.strerror or error}")
    line.send(complaints)


def _plugin_digest(source: Source) -> str:
    try:
        return source.code().digest
    except (OSError, SyntaxError) as error:
        return f"unreadable: {error}"


def _code_digest() -> str:
    files = [*HARNESS.rglob("*.py"), *PLUGINS.rglob("*.py")]
    named = sorted((path.relative_to(HARNESS.parent).as_posix(), hash_file(path)) for path in files)
    return hashlib.sha256("\n".join(map(" ".join, named)).encode()).hexdigest()
