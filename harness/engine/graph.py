"""The stages of a run: as a graph, with the priority of each, and those that wait for a slot."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from harness.store import Stage

if TYPE_CHECKING:
    from harness.engine.contract import Engine

Heap = list[tuple[tuple[float, int], str]]


class StageGraph:
    """Stages by key, with their edges.

    An edge leads from the stage whose key or ``outputs`` holds an input to the stage that reads it; an input that no
    stage makes is in the store. A key that occurs twice is one stage: equal keys mean equal work.

    Attributes:
        stages: key -> stage, in the order given.
        needs: key -> keys of the stages it waits for, each once.
        dependants: key -> keys of the stages that wait for it.
    """

    def __init__(self, stages: Iterable[Stage]) -> None:
        self.stages = {stage.key: stage for stage in stages}
        makers = {made: key for key, stage in self.stages.items() for made in (*stage.outputs, key)}
        self.needs: dict[str, tuple[str, ...]] = {}
        self.dependants: dict[str, list[str]] = {key: [] for key in self.stages}
        for key, stage in self.stages.items():
            self.needs[key] = tuple(dict.fromkeys(makers[name] for name in stage.inputs if name in makers))
            for need in self.needs[key]:
                self.dependants[need].append(key)

    def priorities(self, cost: Callable[[Stage], float]) -> dict[str, float]:
        """Key -> length of the longest chain of work that starts with this stage (its own cost included).

        Running the longest chain first keeps the last worker from ending alone (Hu, "Parallel sequencing and
        assembly line problems", Operations Research 1961).
        """
        longest: dict[str, float] = {}
        for key in reversed([*TopologicalSorter(self.needs).static_order()]):
            after = max((longest[dependant] for dependant in self.dependants[key]), default=0.0)
            longest[key] = after + cost(self.stages[key])
        return longest


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
        on_device = sum(self._lane(stage) for stage in running)
        taken = len(running) - on_device, on_device
        slots = self._engine.slots, self._engine.device_slots
        return next((h for h, used, most in zip(self._heaps, taken, slots, strict=True) if h and used < most), None)

    def _lane(self, stage: Stage) -> bool:
        return bool(self._engine.device_slots) and stage.trains
