"""Find the run that a report or an export is about. No torch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from harness.errors import DataError, UserError, did_you_mean
from harness.runs.record import RECORD, RunRecord
from harness.store import Store

_log = logging.getLogger(__name__)
_MOST = 8
"""Names that an error lists."""


def all_runs(store: Store) -> list[RunRecord]:
    """Every readable run of a store, oldest first; unreadable ones are logged and left out."""
    records = []
    for folder in sorted(store.runs.glob("*/")):
        if not (folder / RECORD).is_file():
            continue
        try:
            records.append(RunRecord.load(folder))
        except DataError as error:
            _log.warning("%s", error)
    return records


def find_run(name: str, store: Store) -> RunRecord:
    """A run by its id, or the latest run of a suite by the suite's file, name, or path of installation.

    Raises:
        UserError: there is none; the text lists what there is.
    """
    folder = store.runs / name
    if "/" not in name and (folder / RECORD).is_file():
        return RunRecord.load(folder)
    records = all_runs(store)
    found = [record for record in records if name in names(record)]
    if not found and Path(name).is_file():
        resolved = str(Path(name).resolve())
        found = [record for record in records if str(Path(record.suite_path).resolve()) == resolved]
    if not found:
        raise no_run(name, store, records)
    return found[-1]


def no_run(name: str, store: Store, records: Sequence[RunRecord]) -> UserError:
    """The error that no run is called so; lists what there is."""
    latest = list(reversed(records))
    known = list(dict.fromkeys([*(record.results.suite for record in latest), *(record.id for record in latest)]))
    more = f" and {len(known) - _MOST} more, see `bench runs`" if len(known) > _MOST else ""
    listed = f"; there are: {', '.join(known[:_MOST])}{more}" if known else "; this store has no runs"
    return UserError(f"no run of '{name}' in {store.root}{did_you_mean(name, known)}{listed}")


def finished_before(record: RunRecord, store: Store) -> RunRecord | None:
    """The latest earlier run of the same suite that came to its end; None where the given one did itself."""
    if record.facts:
        return None
    suite = record.results.suite
    earlier = (other for other in all_runs(store) if other.results.suite == suite and other.id < record.id)
    return max((other for other in earlier if other.facts), key=lambda other: other.id, default=None)


def names(record: RunRecord) -> set[str]:
    """What a run may be called: its id, its suite's name, and the tail of its suite's path."""
    path = Path(record.suite_path)
    tails = {"/".join(path.parts[-count:]) for count in (1, 2, 3)}
    return {record.id, record.results.suite, *tails, *(tail.removesuffix(".yaml") for tail in tails)}
