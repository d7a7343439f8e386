"""Datasets first: what is wrong with the data is told before anything is trained. No torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.engine import Event, Outcome
from harness.errors import DataError
from harness.store.stage import Failure, Stage

RunStages = Callable[[Sequence[Stage], Sequence[Stage]], Outcome]
"""Runs stages, given those that must run and those that may be made again when an artifact of theirs is lost."""


def run_in_phases(
    stages: Sequence[Stage], others: Sequence[Stage], run: RunStages, observe: Callable[[Event], None]
) -> Outcome:
    """Prepare every dataset, then run the rest of what does not build on a dataset that failed.

    Args:
        stages: what must run, inputs first.
        others: the other stages of the plan, whose artifacts are there.

    Raises:
        DataError: a dataset cannot be built from its files; the text holds the message of each such dataset.
    """
    first = [stage for stage in stages if stage.kind == "prepare"]
    if not first:
        return run(stages, others)
    prepared = run(first, ())
    faults = [f"cannot {s.title}: {prepared.failures[s.key].reason}" for s in first if _unusable(prepared, s)]
    if faults:
        raise DataError("\n".join(faults))
    skipped = _skipped(stages, prepared.failures)
    gone = {*skipped, *(stage.key for stage in first)}
    for stage in stages:
        if stage.key in skipped:
            observe(Event("skipped", stage, failure=skipped[stage.key]))
    rest = [stage for stage in stages if stage.key not in gone]
    ready = [stage for stage in first if stage.key not in prepared.failures]
    trained = run(rest, [*others, *ready]) if rest else Outcome()
    return prepared.then(Outcome(failures=skipped)).then(trained)


def _unusable(prepared: Outcome, stage: Stage) -> bool:
    failure = prepared.failures.get(stage.key)
    return failure is not None and failure.status == "data"


def _skipped(stages: Sequence[Stage], failures: dict[str, Failure]) -> dict[str, Failure]:
    """What builds on a failed dataset, by key."""
    reasons: dict[str, Failure] = {}
    lost: dict[str, Failure] = {}
    for stage in stages:
        made = (stage.key, *stage.outputs)
        if stage.key in failures:
            failure = failures[stage.key]
            skipped = Failure("skipped", f"needs {stage.title}: {failure.reason}", since=failure.since)
            lost.update(dict.fromkeys(made, skipped))
            continue
        needed = next((lost[key] for key in stage.inputs if key in lost), None)
        if needed is not None:
            reasons[stage.key] = needed
            lost.update(dict.fromkeys(made, needed))
    return reasons
