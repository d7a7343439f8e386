"""Builds index entries: imports plugins in a child process that may hang, crash or end without harm to this one."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from harness.engine.supervisor import Child
from harness.errors import BenchError
from harness.registry.catalog import BrokenPlugin, Entry
from harness.registry.discovery import BUILT_IN, Source
from harness.registry.importing import reader
from harness.registry.index_worker import main
from harness.safe_io import visible

_SLOW = 5.0  # seconds until an import is told of
MEMORY_LIMIT = 8 * 2**30
"""Bytes that the imports may take together: one that takes ever more must not take the machine's."""
START_LIMIT = 300.0
"""Seconds that starting Python and importing torch may take."""


@dataclass(frozen=True)
class Built:
    """The components of one plugin.

    Attributes:
        entries: its components; their ``digest`` is that of the plugin's own code alone.
        files: path -> SHA-256 of every file that this follows from.
    """

    entries: list[Entry]
    files: Mapping[str, str] = field(default_factory=dict)


def build(sources: Sequence[Source], time_limit: float) -> dict[Source, Built | BrokenPlugin]:
    """Import plugins in child processes and describe their components.

    A plugin that outlives the time limit, or takes its process down, is broken; a new process goes on with the rest.

    Raises:
        BenchError: no child process can be started.
    """
    found: dict[Source, Built | BrokenPlugin] = {}
    waiting = list(sources)
    while waiting:
        done = _build_some(waiting, found, time_limit)
        waiting = waiting[done:]
    return found


def _build_some(sources: list[Source], found: dict[Source, Built | BrokenPlugin], time_limit: float) -> int:
    """Ask one child process; returns how many sources are answered for, from the first."""
    with tempfile.TemporaryFile() as output:
        child = _start(sources, output)
        try:
            child.receive(START_LIMIT)
            for position, source in enumerate(sources):
                try:
                    found[source] = _parsed(source, _receive(child, source, time_limit))
                except TimeoutError:
                    place = child.place(str(source.file))
                    reason = f"importing it took more than {time_limit:g} s{f' ({place})' if place else ''}"
                except EOFError:
                    reason = f"it ended the process that imports it, which {_ending(child, output)}"
                else:
                    continue
                found[source] = _broken(source, reason)
                return position + 1
            return len(sources)
        except (EOFError, TimeoutError):
            ending = _ending(child, output)
            raise BenchError(f"cannot read the plugins: the process that imports them {ending}") from None
        finally:
            child.kill()
            child.wait(5)


def _receive(child: Child, source: Source, time_limit: float) -> Mapping[str, Any]:
    """Return the answer for a source; a plugin that takes long is told of, as nobody else would say what goes on.

    Raises:
        TimeoutError: nothing came in time.
        EOFError: the process has ended.
    """
    answer: Mapping[str, Any]
    if time_limit > _SLOW and source.plugin != BUILT_IN:
        with suppress(TimeoutError):
            answer = child.receive(_SLOW)
            return answer
        print(visible(f"importing {source.file.name} … ({time_limit:g} s at most)"), file=sys.stderr, flush=True)
        time_limit -= _SLOW
    answer = child.receive(time_limit)
    return answer


def _parsed(source: Source, answer: Mapping[str, Any]) -> Built | BrokenPlugin:
    if "reason" in answer:
        return _broken(source, str(answer["reason"]))
    return Built([Entry.from_json(item) for item in answer["entries"]], answer["files"])


def _broken(source: Source, reason: str) -> BrokenPlugin:
    return BrokenPlugin(source.plugin, str(source.file), reason)


def _path() -> list[str]:
    """Return this process's module search path without the plugins' additions."""
    added = reader().folders
    return [*(place for place in sys.path if place not in added), str(Path(__file__).parents[2])]


def _start(sources: Sequence[Source], output: IO[bytes]) -> Child:
    """Start a process that imports plugins, see :func:`harness.registry.index_worker.main`."""
    memory_limit = min(MEMORY_LIMIT, psutil.virtual_memory().total // 2)
    path = [str(Path(place).absolute()) for place in _path()]
    return Child.spawn(main, list(sources), memory_limit, output=output, path=path)


def _ending(child: Child, output: IO[bytes]) -> str:
    """Say how the process ended, with the last line of what was printed in it."""
    ending = "did not answer in time" if child.wait(5) else child.ending()
    output.seek(0)
    lines = output.read().decode("utf-8", "replace").strip().splitlines()
    return f"{ending}: {lines[-1][:200]}" if lines else ending
