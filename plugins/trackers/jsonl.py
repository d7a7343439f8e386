"""A log of the run as JSON lines: one object per event, readable while the run goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import Register, TrackedCell, TrackedRun, TrackedStage, Tracker, UserError, hookimpl, hparam


class JSONLines(Tracker):
    """Write ``log.jsonl`` into the run folder, a line for each event, flushed at once.

    Every line has ``time`` (seconds since 1970) and ``event``: ``start``, ``stage``, ``cell`` or ``finish``. After JSON
    Lines (https://jsonlines.org), which any tool can tail.
    """

    name = "jsonl"

    file: str = hparam("log.jsonl", help="name of the file in the run folder")
    history: bool = hparam(True, help="write each cell's training history too")

    def start(self, run: TrackedRun) -> None:
        if Path(self.file).name != self.file:
            raise UserError(f"'file' is the name of a file in the run folder, found {self.file!r}")
        self._stream = (run.folder / self.file).open("a", encoding="utf-8")
        self._write("start", run=run.id, suite=run.suite, protocol=run.protocol, seeds=list(run.seeds))

    def stage(self, stage: TrackedStage) -> None:
        self._write("stage", **{**vars(stage), "what": stage.event})

    def cell(self, cell: TrackedCell) -> None:
        told = {name: value for name, value in vars(cell).items() if name != "history" or self.history}
        self._write("cell", **told)

    def finish(self, table: Sequence[Mapping[str, Any]], status: str) -> None:
        self._write("finish", status=status, table=list(table))
        self._stream.close()

    def _write(self, event: str, /, **facts: Any) -> None:
        line = {"time": round(time.time(), 3), **facts, "event": event}
        self._stream.write(json.dumps(_plain(line), allow_nan=False) + "\n")
        self._stream.flush()


def _plain(value: Any) -> Any:
    """The value as strict JSON: what is not finite becomes null."""
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


@hookimpl
def bench_register(register: Register) -> None:
    register(JSONLines)
