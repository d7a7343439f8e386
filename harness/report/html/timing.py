"""What the stages of a run cost, by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.store import STAGE_KINDS


@dataclass(frozen=True)
class StageCost:
    """The stages of one kind.

    Attributes:
        stages: how many the run needs; ``timed`` of them have a recorded execution, in this run or an earlier one.
        seconds, cpu_seconds: sums over those; ``longest`` the longest of them.
        peak_memory: the largest, in bytes, or None.
    """

    kind: str
    stages: int
    timed: int
    seconds: float
    cpu_seconds: float
    longest: float
    peak_memory: int | None

    @property
    def mean(self) -> float | None:
        """Mean seconds of a stage."""
        return self.seconds / self.timed if self.timed else None


def stage_costs(titles: Mapping[str, str], records: Mapping[str, Mapping[str, Any]]) -> list[StageCost]:
    """One line for each kind of stage, in the order of the pipeline, and a line ``all``.

    Args:
        titles: stage key -> title, whose first word is the kind.
        records: stage key -> what the store recorded of its execution.
    """
    kinds: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in STAGE_KINDS}
    for key, title in titles.items():
        kinds.setdefault(kind_of(title), []).append(records.get(key, {}))
    found = [_cost(kind, facts) for kind, facts in kinds.items() if facts]
    return [*found, _cost("all", [fact for facts in kinds.values() for fact in facts])] if len(found) > 1 else found


def kind_of(title: str) -> str:
    """The kind of a stage, by its title."""
    first = title.partition(" ")[0]
    return first if first in STAGE_KINDS else "analyse"


def _cost(kind: str, facts: list[Mapping[str, Any]]) -> StageCost:
    timed = [fact for fact in facts if isinstance(fact.get("seconds"), (int, float))]
    seconds = [float(fact["seconds"]) for fact in timed]
    peaks = [int(fact["peak_memory"]) for fact in timed if fact.get("peak_memory")]
    return StageCost(
        kind=kind,
        stages=len(facts),
        timed=len(timed),
        seconds=sum(seconds),
        cpu_seconds=sum(_numbers(timed, "cpu_seconds")),
        longest=max(seconds, default=0.0),
        peak_memory=max(peaks, default=None),
    )


def _numbers(facts: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    return [float(fact[name]) for fact in facts if isinstance(fact.get(name), (int, float))]
