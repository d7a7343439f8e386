"""Compare a plan with a store: what is cached, what must run, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from harness.engine.devices import CPU
from harness.engine.provenance import versions
from harness.store import STAGE_KINDS, difference
from harness.store.keys import DIGEST

if TYPE_CHECKING:
    from harness.plan.build import Plan
    from harness.store import Failure, Stage, Store

_COMPARED = 1_000
"""Stored artifacts that are compared with a stage, the newest."""
State = Literal["cached", "unneeded", "new", "stale", "failed"]


@dataclass(frozen=True, slots=True)
class StageStatus:
    """The status of one stage.

    Attributes:
        state: ``cached``; ``unneeded`` (not in the store, but nothing that must run reads it); ``new`` (the suite ran
            nothing in its place, or with another seed); ``stale`` (what it ran in its place differs in ``reason``);
            ``failed`` (a stored failure, of itself or of what it needs).
        reason: why, in words; differences are joined by ``; ``.
        stored: when a ``failed`` stage failed; empty for others.
        seconds: estimated run time from recorded stages, or None where nothing is known.
    """

    stage: Stage
    state: State
    reason: str = ""
    seconds: float | None = None
    stored: str = ""


def needed(
    plan: Plan,
    store: Store,
    targets: Iterable[str] | None = None,
    *,
    retry_failed: bool = False,
    look: _Look | None = None,
) -> list[Stage]:
    """Return the stages that must run for the targets (all scores by default), inputs first.

    A stage that is missing from the store but only feeds stages that are there is not needed.
    """
    look = look or _Look(plan, store)
    wanted: set[str] = set()
    waiting = list(targets) if targets is not None else [cell.score for cell in plan.cells]
    while waiting:
        producer = plan.producers[waiting.pop()]
        stage = plan.stages[producer]
        if producer in wanted or all(look.has(key) for key in (producer, *stage.outputs)):
            continue
        wanted.add(producer)
        if retry_failed or look.failure(producer) is None:
            waiting.extend(stage.inputs)
    return [stage for key, stage in plan.stages.items() if key in wanted]


class _Look:
    """The artifacts and failures in a store: one listing tells which are missing; the others are checked on request."""

    def __init__(self, plan: Plan, store: Store) -> None:
        self._store = store
        self._present = store.present(plan.producers)
        self._failed = store.failed(plan.stages)

    def has(self, key: str) -> bool:
        """Return True if there is a complete artifact."""
        return key in self._present and self._store.has(key)

    def failure(self, key: str) -> Failure | None:
        """Return the stored failure of a stage."""
        return self._store.failure(key) if key in self._failed else None


def survey(plan: Plan, store: Store, before: Collection[str]) -> list[StageStatus]:
    """Return every stage's status, in the plan's order, with the difference to the nearest stored artifact.

    Args:
        plan: the suite's.
        store: where artifacts are.
        before: keys of stages that earlier runs of the suite needed. Only those are compared that the plan no longer
            needs: what stands beside them, another seed or tuned value, replaces nothing.
    """
    look = _Look(plan, store)
    run = {stage.key for stage in needed(plan, store, look=look)}
    clock, nearest = Clock(store), Nearest(store, set(before).difference(plan.producers))
    statuses: dict[str, StageStatus] = {}
    for stage in plan.stages.values():  # inputs come first
        needs = [statuses[plan.producers[key]] for key in stage.inputs] if stage.key in run else []
        failed = next((status for status in needs if status.state == "failed"), None)
        status = _status(stage, look, run, clock, nearest)
        if failed is not None:
            status = StageStatus(stage, "failed", "needs a stage that failed", stored=failed.stored)
        elif {need.state for need in needs} & {"new", "stale"} == {"new"} and _by_inputs(status.reason):
            status = replace(status, state="new", reason="what it reads is new")
        statuses[stage.key] = status
    return list(statuses.values())


def _status(stage: Stage, look: _Look, run: set[str], clock: Clock, nearest: Nearest) -> StageStatus:
    if stage.key not in run:
        return StageStatus(stage, "cached" if look.has(stage.key) else "unneeded")
    failure = look.failure(stage.key)
    if failure is not None:
        return StageStatus(stage, "failed", f"{failure.status}: {failure.reason}", clock.seconds(stage), failure.since)
    stored = nearest.find(stage)
    if stored is None:
        return StageStatus(stage, "new", "this suite has not run it", clock.seconds(stage))
    differing = difference(stored, stage.preimage)
    state: State = "new" if all(item.startswith("seed") for item in differing) else "stale"
    return StageStatus(stage, state, "; ".join(differing) or "its artifact was removed", clock.seconds(stage))


def _by_inputs(reason: str) -> bool:
    """Return True if all differences follow from what a stage reads, and from the seed."""
    parts = [part for part in reason.split("; ") if not part.startswith("seed: ")]
    return all(part.endswith(" changed") and not part.startswith("source of ") for part in parts)


class Nearest:
    """Finds, among some artifacts, the one that is most like a planned stage, so that a plan can say what differs."""

    def __init__(self, store: Store, among: Collection[str]) -> None:
        self._store, self._among = store, among
        self._places: dict[str, list[_Stored]] = {}

    def find(self, stage: Stage) -> Mapping[str, Any] | None:
        """Return the preimage with the fewest different values at the stage's place, None where nothing is stored.

        Of many, those with the same settings are compared, which differ in code or data; where there are none, the
        newest.
        """
        if stage.place not in self._places:
            stored = self._store.preimages(stage.place, self._among)
            self._places[stage.place] = [_stored(preimage) for _, preimage in stored]
        there = self._places[stage.place]
        if not there:
            return None
        wanted = _stored(stage.preimage)
        same = [stored for stored in there if stored.settings == wanted.settings]
        compared = (same or there)[-_COMPARED:]
        return min(compared, key=lambda stored: len(stored.leaves.items() ^ wanted.leaves.items())).preimage


class _Stored(NamedTuple):
    """A preimage, its values by path, and those that are no digests of code or data."""

    preimage: Mapping[str, Any]
    leaves: dict[str, str]
    settings: frozenset[tuple[str, str]]


def _stored(preimage: Mapping[str, Any]) -> _Stored:
    leaves = dict(_leaves(preimage))
    return _Stored(preimage, leaves, frozenset(item for item in leaves.items() if not DIGEST.search(item[1])))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted path and text of every value that is not a mapping."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}")
    else:
        yield path, repr(value)


class Clock:
    """Estimates run time from recorded stages: the median of those with the same work."""

    def __init__(self, store: Store) -> None:
        self._recorded: defaultdict[str, list[float]] = defaultdict(list)
        for work, seconds in store.timings():
            self._recorded[work].append(seconds)

    def seconds(self, stage: Stage) -> float | None:
        """Return the estimate in seconds, or None if nothing is recorded."""
        recorded = self._recorded and self._recorded.get(stage.work)
        return median(recorded) if recorded else None


def made_otherwise(plan: Plan, store: Store, device: str = CPU) -> list[str]:
    """Return a line for each way in which cached stages were made otherwise than they would be now.

    Args:
        device: where a run would train networks.
    """
    here, present, counts = versions(), store.present(plan.stages), Counter[str]()
    for key, stage in plan.stages.items():
        if key in present and (facts := store.record(key).get("provenance")):
            counts[_made(facts, here, device if stage.trains else None)] += 1
    return [
        f"{f'{count} cached stages were' if count > 1 else '1 cached stage was'} made {words}"
        for words, count in counts.most_common()
        if words
    ]


def _made(facts: Mapping[str, Any], here: Mapping[str, str], device: str | None) -> str:
    """Say how what made a stage differs from now, in its libraries and, where one is given, in its device."""
    then = facts.get("versions", {})
    changed = [
        f"{name} {then[name]} (now {now})"
        for name, now in here.items()
        if name != "equad-bench" and then.get(name, now) != now  # a change of ours that matters is in the keys
    ]
    words = [f"with {', '.join(changed)}"] if changed else []
    made_on = facts.get("device", CPU)
    if device is not None and (made_on == CPU) != (device == CPU):
        before, now = ("the CPU" if place == CPU else place for place in (made_on, device))
        words.append(f"on {before} (now {now})")
    return "; ".join(words)


def totals(statuses: Iterable[StageStatus]) -> dict[str, Counter[str]]:
    """Return kind -> number of stages in each state, in the order of the pipeline."""
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for status in statuses:
        table[status.stage.kind][status.state] += 1
    return {kind: table[kind] for kind in STAGE_KINDS if kind in table}
