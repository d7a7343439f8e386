"""Builds index entries: imports plugins in a child process that may hang, crash or end without harm to this one."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from harness.engine.supervisor import Child
from harness.errors import BenchError
from harness.registry.catalog import BrokenPlugin, Entry
from harness.registry.core_files import HARNESS
from harness.registry.discovery import Source
from harness.registry.index_worker import main

_START_LIMIT = 300.0
"""Seconds that starting Python may take, on a disk that is slow."""


@dataclass(frozen=True)
class Built:
    """The components of one plugin.

    Attributes:
        entries: its components; their ``digest`` is that of the plugin's own code alone.
        files: path -> SHA-256 of every file that this follows from.
    """

    entries: list[Entry]
    files: Mapping[str, str]


def build(sources: Sequence[Source], time_limit: float) -> dict[Source, Built | BrokenPlugin]:
    """Import plugins in child processes and describe their components.

    A plugin that outlives the time limit, or takes its process down, is broken; a new process goes on with the rest.

    Raises:
        BenchError: no child process can be started.
    """
    found: dict[Source, Built | BrokenPlugin] = {}
    while len(found) < len(sources):
        _build_some(sources[len(found) :], found, time_limit)
    return found


def _build_some(sources: Sequence[Source], found: dict[Source, Built | BrokenPlugin], time_limit: float) -> None:
    """Ask one child process about sources, until it has answered for all or one has broken it."""
    path = [str(Path(place).absolute()) for place in [*sys.path, str(HARNESS.parent)]]
    with tempfile.TemporaryFile() as output:
        child = Child.spawn(main, list(sources), output=output, path=path)
        try:
            child.receive(_START_LIMIT)
            for source in sources:
                try:
                    found[source] = _parsed(source, child.receive(time_limit))
                    continue
                except TimeoutError:
                    reason = f"importing it took more than {time_limit:g} s, at {child.place(str(source.file))}"
                except EOFError:
                    reason = f"it ended the process that imports it, which {_ending(child, output)}"
                found[source] = _parsed(source, {"reason": reason})
                return
        except (EOFError, TimeoutError):
            ending = _ending(child, output)
            raise BenchError(f"cannot read the plugins: the process that imports them {ending}") from None
        finally:
            child.kill()
            child.wait(5)


def _parsed(source: Source, answer: Mapping[str, Any]) -> Built | BrokenPlugin:
    if "reason" in answer:
        return BrokenPlugin(source.plugin, str(source.file), answer["reason"])
    return Built([Entry.from_json(item) for item in answer["entries"]], answer["files"])


def _ending(child: Child, output: IO[bytes]) -> str:
    """Say how the process ended, with the last line of what was printed in it."""
    ending = "did not answer in time" if child.wait(5) else child.ending()
    output.seek(0)
    lines = output.read().decode("utf-8", "replace").strip().splitlines()
    return f"{ending}: {lines[-1][:200]}" if lines else ending
