"""Stages that wait: for a slot, or for another process that runs them."""

from __future__ import annotations

import heapq
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from harness.engine.contract import Engine
    from harness.store import Stage

_FIRST_LOOK: Final = 0.2  # seconds until another look at a stage that another process runs
_LAST_LOOK: Final = 2.0

Heap = list[tuple[tuple[float, int], str]]


class Ready:
    """Heaps, the first in rank first: of the stages for the device slots, of those for the others, and ``here``.

    An engine without device slots has one lane. ``here`` holds what the calling process runs itself: stages with
    ``in_parent``, and all stages of an engine that runs in this process.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._heaps: tuple[Heap, Heap] = ([], [])
        self.here: Heap = []

    def push(self, rank: tuple[float, int], stage: Stage) -> None:
        """Queue a stage."""
        here = stage.in_parent or self._engine.in_process
        heapq.heappush(self.here if here else self._heaps[self._lane(stage)], (rank, stage.key))

    def open(self, running: Collection[Stage]) -> Heap | None:
        """Return a heap that is not empty and for whose stages a slot is free, while these run; None without one."""
        if not any(self._heaps):
            return None
        on_device = sum(self._lane(stage) for stage in running)
        taken = len(running) - on_device, on_device
        slots = self._engine.slots, self._engine.device_slots
        return next((h for h, used, most in zip(self._heaps, taken, slots, strict=True) if h and used < most), None)

    def _lane(self, stage: Stage) -> bool:
        return bool(self._engine.device_slots) and stage.trains


class Elsewhere:
    """Stages that other processes run, looked at again after a while, which grows."""

    def __init__(self) -> None:
        self._due: list[tuple[float, str]] = []
        self._delays: dict[str, float] = {}

    def put(self, key: str) -> bool:
        """Put a stage aside; True for the first time."""
        first = key not in self._delays
        self._delays[key] = _FIRST_LOOK if first else min(2 * self._delays[key], _LAST_LOOK)
        heapq.heappush(self._due, (time.monotonic() + self._delays[key], key))
        return first

    def take(self) -> list[str]:
        """Return the stages to look at now, and forget that they wait."""
        keys = []
        while self._due and self._due[0][0] <= time.monotonic():
            keys.append(heapq.heappop(self._due)[1])
        return keys

    def pause(self) -> float | None:
        """Return the seconds until the next look; None where nothing waits."""
        return max(0.0, self._due[0][0] - time.monotonic()) if self._due else None
