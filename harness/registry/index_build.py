"""Builds index entries: imports plugins in a child process that may hang, crash or end without harm to this one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import psutil

from harness.errors import BenchError
from harness.registry.catalog import BrokenPlugin, Entry
from harness.registry.discovery import BUILT_IN, Source
from harness.registry.importing import reader
from harness.safe_io import visible

_FRAME = re.compile(r'File "(.+)", line (\d+)')
_LOOK = 0.5  # seconds to wait for a traceback
_SLOW = 5.0  # seconds until an import is told of
MEMORY_LIMIT = 8 * 2**30
"""Bytes that the imports may take together: one that takes ever more must not take the machine's."""
START_LIMIT = 300.0
"""Seconds that starting Python and importing torch may take."""

# The answers get the child's own standard output; what plugins print goes to standard error, which is kept aside.
_START = """
import json, os, sys
request = json.loads(sys.stdin.readline())
sys.path[:] = request["path"]
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
from harness.registry.index_worker import main
main(request, answers)
"""


@dataclass(frozen=True)
class Built:
    """What one plugin holds.

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
    with _Child(sources, time_limit) as child:
        current: int | None = None
        while True:
            try:
                message = child.next(START_LIMIT) if current is None else _next(child, sources[current], time_limit)
            except TimeoutError:
                message = None
                place = "" if current is None else child.place(sources[current].file)
                reason = f"importing it took more than {time_limit:g} s{place}"
            else:
                reason = "" if message is not None else f"it ended the process that imports it ({child.end()})"
            if message is None:
                if current is None:
                    raise BenchError(f"cannot read the plugins: the process that imports them fails ({child.end()})")
                found[sources[current]] = _broken(sources[current], reason)
                return current + 1
            current = int(message.pop("at"))
            if message:
                found[sources[current]] = _parsed(sources[current], message)
                if current + 1 == len(sources):
                    return len(sources)


def _next(child: _Child, source: Source, time_limit: float) -> dict[str, Any] | None:
    """What the child says of a source; a plugin that takes long is told of, as nobody else would say what goes on.

    Raises:
        TimeoutError: nothing came in time.
    """
    if time_limit > _SLOW and source.plugin != BUILT_IN:
        with suppress(TimeoutError):
            return child.next(_SLOW)
        print(visible(f"importing {source.file.name} … ({time_limit:g} s at most)"), file=sys.stderr, flush=True)
        time_limit -= _SLOW
    return child.next(time_limit)


def _parsed(source: Source, answer: Mapping[str, Any]) -> Built | BrokenPlugin:
    if "reason" in answer:
        return _broken(source, str(answer["reason"]))
    return Built([Entry.from_json(item) for item in answer["entries"]], answer["files"])


def _broken(source: Source, reason: str) -> BrokenPlugin:
    return BrokenPlugin(source.plugin, str(source.file), reason)


def _path() -> list[str]:
    """Where this process looks for modules, but for what plugins have added."""
    added = reader().folders
    return [*(place for place in sys.path if place not in added), str(Path(__file__).parents[2])]


class _Child:
    """One child process and its answers, read by a thread so that waiting for them can end."""

    def __init__(self, sources: Sequence[Source], time_limit: float) -> None:
        self._noise = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._noise,
            text=True,
            encoding="utf-8",
        )
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._request = {
            "path": [str(Path(place).absolute()) for place in _path()],
            "time_limit": time_limit,
            "memory_limit": min(MEMORY_LIMIT, psutil.virtual_memory().total // 2),
            "sources": [{name: str(value) for name, value in vars(source).items()} for source in sources],
        }

    def __enter__(self) -> _Child:
        assert self._process.stdin is not None
        self._reader.start()
        try:
            with self._process.stdin as stream:
                stream.write(json.dumps(self._request) + "\n")
        except BrokenPipeError:
            pass  # it ended before it read; `next` will say so
        return self

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def next(self, seconds: float) -> dict[str, Any] | None:
        """The next message, or None where the process has ended.

        Raises:
            TimeoutError: none came in time.
        """
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            raise TimeoutError from None
        return None if line is None else json.loads(line)

    def place(self, file: Path) -> str:
        """`` (at mine.py, line 7)``: where in a file the process is at the moment, or nothing."""
        with suppress(AttributeError, OSError):
            os.kill(self._process.pid, signal.SIGUSR1)
            time.sleep(_LOOK)
        lines = [line for name, line in _FRAME.findall(self._noise_text()) if name == str(file)]
        return f" (at {file.name}, line {lines[0]})" if lines else ""

    def end(self) -> str:
        """Stop the process if need be, and tell how it ended."""
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return "it did not answer in time"
        return ", ".join(filter(None, [_code(code), self._last_words()]))

    def _last_words(self) -> str:
        """The last line on its standard error."""
        lines = self._noise_text().strip().splitlines()
        return lines[-1][:200] if lines else ""

    def _noise_text(self) -> str:
        self._noise.seek(0)
        return self._noise.read().decode("utf-8", "replace")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(timeout=5)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()
        self._noise.close()


def _code(code: int) -> str:
    """An exit status in words."""
    try:
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}: something calls os._exit"
    except ValueError:
        return f"signal {-code}"
