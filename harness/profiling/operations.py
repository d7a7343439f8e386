"""Which operations of torch, and which Python functions, take the time of a few steps."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from harness.profiling.result import Operation
from harness.profiling.sections import MARK

STEPS = 5
"""How many steps are recorded: recording slows them, and a trace of many is too long to look at."""


class Recorder:
    """Records operations, then functions where asked for, each over :data:`STEPS` steps.

    Args:
        top: how many of each to keep.
        functions: whether to record Python functions too.
        trace: file of the Chrome trace to write, in a folder that is there, or None.
    """

    def __init__(self, top: int, *, functions: bool = False, trace: Path | None = None) -> None:
        self.operations: tuple[Operation, ...] = ()
        self.functions: tuple[Operation, ...] = ()
        self.trace: Path | None = None
        self._top, self._want_functions, self._wanted_trace = top, functions, trace
        self._left = STEPS
        self._torch: Any = None
        self._python: cProfile.Profile | None = None

    def advance(self) -> bool:
        """Called after each step; False once there is nothing left to record."""
        if self._torch is None:
            self._torch = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
            self._torch.__enter__()
            return True
        self._left -= 1
        if self._left:
            return True
        if self._python is None:
            self._close_torch()
            self._left = STEPS
            if self._want_functions:
                self._python = cProfile.Profile()
                self._python.enable()
                return True
        else:
            self._close_python()
        return False

    def close(self) -> None:
        """Stop what still records, where a training ended early."""
        if self._torch is not None and not self.operations:
            self._close_torch()
        if self._python is not None and not self.functions:
            self._close_python()

    def _close_torch(self) -> None:
        self._torch.__exit__(None, None, None)
        rows = [
            (event.key, event.count, event.self_cpu_time_total / 1e6)
            for event in self._torch.key_averages()
            if not event.key.startswith(MARK)
        ]
        self.operations = _top(rows, self._top)
        if self._wanted_trace is not None:
            self._torch.export_chrome_trace(str(self._wanted_trace))
            self.trace = self._wanted_trace

    def _close_python(self) -> None:
        assert self._python is not None
        self._python.disable()
        stats: dict[tuple[str, int, str], Any] = pstats.Stats(self._python).stats  # type: ignore[attr-defined]
        rows = [(_place(*place), calls, own) for place, (_, calls, own, _, _) in stats.items()]
        self.functions = _top(rows, self._top)


def _place(file: str, line: int, name: str) -> str:
    path = Path(file)
    short = "/".join(path.parts[-2:]) if path.is_absolute() else file
    return name if file == "~" else f"{short}:{line}({name})"


def _top(rows: Iterable[tuple[str, int, float]], count: int) -> tuple[Operation, ...]:
    known = sorted(rows, key=lambda row: -row[2])
    total = sum(seconds for _, _, seconds in known) or 1.0
    return tuple(Operation(name, calls / STEPS, own / STEPS, own / total) for name, calls, own in known[:count])
