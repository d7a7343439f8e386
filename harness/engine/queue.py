"""Stages that wait for a slot."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.engine.contract import Engine
    from harness.store import Stage

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
