"""Find the run that a report or an export is about. No torch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import DataError, UserError, did_you_mean
from harness.results.run_record import RECORD, RunRecord, path_text
from harness.safe_io import visible
from harness.store.keys import hash_file
from harness.store.store import Store
from harness.suite.files import installed_name, suites_folder

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


def find_run(name: str, store: Store, tell: Callable[[str], None] = _log.warning) -> RunRecord:
    """A run by its id, or the latest run of a suite by the suite's file or name.

    Args:
        name: an id; a file, which means that very file, as one store serves all projects of a user; or the name of a
            suite or of an installed one.
        tell: is told which files of the suite have changed since the run.

    Raises:
        UserError: there is none, and the text lists what there is; or suites of different files have the name.
    """
    folder = store.runs / name
    if "/" not in name and (folder / RECORD).is_file():
        return RunRecord.load(folder)
    records = all_runs(store)
    found = runs_of(name, records)
    if not found:
        raise no_run(name, store, records)
    placed = [record for record in found if Path(record.suite_path).is_absolute()]
    _refuse_several(name, placed)
    record = (placed or found)[-1]
    changed = _changed(name, record)
    if changed:
        tell(f"changed since run {record.id}: {visible(', '.join(changed))}")
    return record


def runs_of(name: str, records: Sequence[RunRecord]) -> list[RunRecord]:
    """Those of the given runs that a suite's file, a suite's name or a run's id means."""
    file = _file(name)
    if file:
        return [record for record in records if record.suite_path == file]
    installed = installed_name(name)
    return [
        record
        for record in records
        if name in (record.id, record.results.suite) or (installed and record.installed == installed)
    ]


def _file(name: str) -> str:
    """The file that is meant, as records call it; empty for a name. A suite's file may be gone since."""
    path = Path(name)
    named = path.suffix not in (".yaml", ".yml") or installed_name(name)
    return path_text(path) if path.is_file() or not named else ""


def _refuse_several(name: str, found: Sequence[RunRecord]) -> None:
    """Refuse a name that suites of several files have; a file that is gone counts for the latest run alone.

    Raises:
        UserError: it is so; the text tells the latest run of each.
    """
    latest: dict[str, RunRecord] = {}
    for record in found:
        if record is found[-1] or record.installed or Path(record.suite_path).is_file():
            latest[record.installed or record.suite_path] = record
    if len(latest) > 1:
        listed = "; ".join(f"{suite}, latest run {record.id}" for suite, record in latest.items())
        raise UserError(f"'{name}' is the name of several suites with runs; give the file or the run: {listed}")


def _changed(name: str, record: RunRecord) -> list[str]:
    """The files of a suite, found by its file or name, that are not what they were when it ran."""
    path = suites_folder() / f"{record.installed}.yaml" if record.installed else Path(record.suite_path)
    path = Path(name).resolve() if Path(name).is_file() else path
    files = record.suite_files.items() if path.is_file() else ()
    return [file for file, digest in files if _digest(path.parent / file) != digest]


def _digest(path: Path) -> str:
    try:
        return hash_file(path) if path.is_file() else ""
    except OSError:
        return ""


def no_run(name: str, store: Store, records: Sequence[RunRecord]) -> UserError:
    """The error that no run is called so, or is of this file; lists what there is."""
    latest = list(reversed(records))
    known = list(dict.fromkeys([*(record.results.suite for record in latest), *(record.id for record in latest)]))
    more = f" and {len(known) - _MOST} more, see `bench runs`" if len(known) > _MOST else ""
    listed = f"; there are: {', '.join(known[:_MOST])}{more}" if known else "; this store has no runs"
    what = f"'{name}'" if not _file(name) else f"the file {_file(name)}"
    return UserError(f"no run of {what} in {store.root}{did_you_mean(name, known)}{listed}")


def finished_before(record: RunRecord, store: Store) -> RunRecord | None:
    """The latest earlier run of the same suite that came to its end; None where the given one did itself."""
    if record.facts:
        return None
    earlier = (other for other in all_runs(store) if _suite(other) == _suite(record) and other.id < record.id)
    return max((other for other in earlier if other.facts), key=lambda other: other.id, default=None)


def _suite(record: RunRecord) -> tuple[str, str]:
    """What makes two runs those of the same suite."""
    return record.results.suite, record.installed or record.suite_path
