"""Compare a plan with a store: what is cached, what must run, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from harness.keys import difference

if TYPE_CHECKING:
    from harness.plan.build import Plan
    from harness.stage import Stage
    from harness.store import Store

State = Literal["cached", "unneeded", "new", "stale", "failed"]


@dataclass(frozen=True)
class StageStatus:
    """Where one stage stands.

    Attributes:
        state: ``cached``; ``unneeded`` (not in the store, but nothing that must run reads it); ``new`` (nothing
            like it was ever stored); ``stale`` (something like it was, but ``reason`` differs); ``failed``
            (a stored failure).
        reason: why, in words.
        seconds: estimated run time from recorded stages, or None where nothing is known.
    """

    stage: Stage
    state: State
    reason: str = ""
    seconds: float | None = None

    @property
    def runs(self) -> bool:
        """Whether a run would execute this stage now."""
        return self.state in ("new", "stale")


def needed(
    plan: Plan, store: Store, targets: Iterable[str] | None = None, *, retry_failed: bool = False
) -> list[Stage]:
    """The stages that must run for the targets (all scores by default), inputs first.

    A stage that is missing from the store but only feeds stages that are there is not needed.
    """
    wanted: set[str] = set()
    waiting = list(targets) if targets is not None else [cell.score for cell in plan.cells]
    while waiting:
        producer = plan.producers[waiting.pop()]
        stage = plan.stages[producer]
        if producer in wanted or _complete(stage, store):
            continue
        wanted.add(producer)
        if retry_failed or store.failure(producer) is None:
            waiting.extend(stage.inputs)
    return [stage for key, stage in plan.stages.items() if key in wanted]


def _complete(stage: Stage, store: Store) -> bool:
    return all(store.has(key) for key in (stage.key, *stage.outputs))


def survey(plan: Plan, store: Store, *, retry_failed: bool = False) -> list[StageStatus]:
    """Every stage's status, in the plan's order, with the difference to the nearest stored artifact."""
    run = {stage.key for stage in needed(plan, store, retry_failed=retry_failed)}
    clock, nearest = Clock(store), _Nearest(store)
    return [_status(stage, store, run, clock, nearest) for stage in plan.stages.values()]


def _status(stage: Stage, store: Store, run: set[str], clock: Clock, nearest: _Nearest) -> StageStatus:
    if stage.key not in run:
        return StageStatus(stage, "cached" if store.has(stage.key) else "unneeded")
    failure = store.failure(stage.key)
    if failure is not None:
        return StageStatus(stage, "failed", f"{failure.status}: {failure.reason}", clock.seconds(stage))
    stored = nearest.find(stage)
    if stored is None:
        return StageStatus(stage, "new", "nothing like it is stored", clock.seconds(stage))
    return StageStatus(stage, *_compare(stage, stored), clock.seconds(stage))


def _compare(stage: Stage, stored: Mapping[str, Any]) -> tuple[State, str]:
    """``new`` where only the seed differs from what is stored; else ``stale`` with the differences."""
    differences = difference(stored, stage.preimage)
    text = "; ".join(differences) or "its artifact was removed"
    return ("new" if all(item.startswith("seed") for item in differences) else "stale"), text


class _Nearest:
    """Finds the stored artifact at a stage's place with the fewest different values; reads each place once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places: dict[str, list[tuple[set[tuple[str, str]], Mapping[str, Any]]]] = {}

    def find(self, stage: Stage) -> Mapping[str, Any] | None:
        """Its preimage, or None where nothing is stored at the place."""
        if stage.place not in self._places:
            stored = [preimage for _, preimage in self._store.preimages(stage.place)]
            self._places[stage.place] = [(set(_leaves(preimage)), preimage) for preimage in stored]
        mine = set(_leaves(stage.preimage))
        known = self._places[stage.place]
        return min(known, key=lambda item: len(item[0] ^ mine))[1] if known else None


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Dotted path and text of every value that is not a mapping."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}")
    else:
        yield path, repr(value)


class Clock:
    """Estimates of run time from what is recorded: the median of like stages, else of the same kind."""

    def __init__(self, store: Store) -> None:
        self._places: dict[str, list[float]] = {}
        self._kinds: dict[str, list[float]] = {}
        for place, seconds in store.timings():
            self._places.setdefault(place, []).append(seconds)
            self._kinds.setdefault(place.split("/", 1)[0], []).append(seconds)

    def seconds(self, stage: Stage) -> float | None:
        """The estimate, or None where nothing is recorded."""
        known = self._places.get(stage.place) or self._kinds.get(stage.kind)
        return median(known) if known else None


def totals(statuses: Iterable[StageStatus]) -> dict[str, Counter[str]]:
    """kind -> how many stages are in each state."""
    table: dict[str, Counter[str]] = {}
    for status in statuses:
        table.setdefault(status.stage.kind, Counter())[status.state] += 1
    return table
