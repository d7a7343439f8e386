"""Find the run or the cell that a command is about. No torch."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import DataError, FileError, UserError, did_you_mean
from harness.plan.build import Cell
from harness.results.run_record import RECORD, CellRecord, RunRecord, path_text
from harness.run.session import Options, Session, open_session
from harness.safe_io import visible
from harness.store import Stage, Store, hash_file
from harness.store.leases import running
from harness.suite import find_suite
from harness.suite.files import installed_name, suites_folder
from harness.suite.overrides import NARROWED, QUICK

_CELL_ID = re.compile(r"[0-9a-f]{8}")
_MOST = 8
"""Names that an error lists."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenedCell:
    """A cell of an opened suite.

    Attributes:
        session: the suite, narrowed to what was asked for.
        fitting: how many cells were asked for; ``cell`` is the first.
    """

    session: Session
    cell: Cell
    fitting: int = 1

    @property
    def train(self) -> Stage:
        """The stage that trains it."""
        return self.session.plan.stages[self.cell.train]


def all_runs(store: Store) -> list[RunRecord]:
    """Return every readable run of a store, see :func:`load_run`, oldest first; others are logged and left out."""
    records = []
    for folder in sorted(store.runs.glob("*/")):
        if not (folder / RECORD).is_file():
            continue
        try:
            records.append(load_run(folder.name, store))
        except DataError as error:
            _log.warning("%s", error)
    return records


def load_run(run: str, store: Store) -> RunRecord:
    """Read a run's record. Where its process is gone, which a kill or a full disk kept from it, it is interrupted.

    Raises:
        DataError: there is no readable record.
    """
    record = RunRecord.load(store.runs / run)
    with suppress(FileError):  # leases cannot be tried in a store that cannot be written
        if record.status == "running" and run not in running(store):
            record = RunRecord.load(store.runs / run)  # it may have ended between the two looks
            return replace(record, status="interrupted") if record.status == "running" else record
    return record


def find_run(name: str, store: Store, tell: Callable[[str], None] = _log.warning) -> RunRecord:
    """Find a run by its id, or by the file or name of its suite the latest that has all of it.

    That is one that came to its end and was not narrowed; where there is none, the latest. Quick runs never count.

    Args:
        name: an id; a file, which means that very file, as one store serves all projects of a user; or the name of a
            suite or of an installed one.
        tell: is told of later runs that were passed over, what a run lacks, and which files of the suite have changed
            since.

    Raises:
        UserError: there is none, and the text lists what there is; or suites of different files have the name.
    """
    folder = store.runs / name
    if "/" not in name and (folder / RECORD).is_file():
        return load_run(name, store)
    records = all_runs(store)
    runs = runs_of(name, records)
    if not runs:
        raise no_run(name, store, records)
    _refuse_several(name, runs)
    record = _fullest(name, runs, tell)
    if changed := _changed(name, record):
        tell(f"changed since run {record.id}: {visible(', '.join(changed))}")
    return record


def runs_of(name: str, records: Sequence[RunRecord]) -> list[RunRecord]:
    """Select the runs that a suite's file, a suite's name or a run's id means."""
    if file := _file(name):
        return [record for record in records if record.suite_path == file]
    installed = installed_name(name)
    return [
        record
        for record in records
        if name in (record.id, record.results.suite) or (installed and record.installed == installed)
    ]


def _file(name: str) -> str:
    """Return the file that is meant, as records name it; empty for a name. A suite's file may be gone since."""
    path = Path(name)
    named = path.suffix not in (".yaml", ".yml") or installed_name(name)
    return path_text(path) if path.is_file() or not named else ""


def _refuse_several(name: str, runs: Sequence[RunRecord]) -> None:
    """Refuse a name that suites of several files have; a file that is gone counts for the latest run alone.

    Raises:
        UserError: it is so; the text tells the latest run of each.
    """
    latest: dict[str, RunRecord] = {}
    for record in runs:
        if record is runs[-1] or record.installed or Path(record.suite_path).is_file():
            latest[record.installed or record.suite_path] = record
    if len(latest) > 1:
        listed = "; ".join(f"{suite}, latest run {record.id}" for suite, record in latest.items())
        raise UserError(f"'{name}' is the name of several suites with runs; give the file or the run: {listed}")


def _fullest(name: str, runs: Sequence[RunRecord], tell: Callable[[str], None]) -> RunRecord:
    real = [record for record in runs if QUICK not in record.results.overrides]
    if not real:
        raise UserError(f"'{name}' has only quick runs, which are shown by their id: {runs[-1].id}")
    record = next((record for record in reversed(real) if not _lacks(record)), real[-1])
    if lacks := _lacks(record):
        tell(f"no run of the whole suite has ended; this is the latest, {record.id}: {lacks}")
    later = [f"{other.id} ({_lacks(other)})" for other in real[real.index(record) + 1 :]]
    if later:
        tell(f"this is the latest run of the whole suite; later ones, shown by their id: {', '.join(later)}")
    return record


def _lacks(record: RunRecord) -> str:
    """Return why a run may lack cells of its suite; empty where it has all."""
    narrowed = [text for text in record.results.overrides if text.startswith(NARROWED)]
    return "; ".join(narrowed if record.facts else [record.status, *narrowed])


def _changed(name: str, record: RunRecord) -> list[str]:
    """Return the files of a suite, found by its file or name, that have changed since it ran."""
    path = suites_folder() / f"{record.installed}.yaml" if record.installed else Path(record.suite_path)
    path = Path(name).resolve() if Path(name).is_file() else path
    changed = []
    for place, digest in record.suite_files.items() if path.is_file() else ():
        file, now = path.parent / place, ""
        with suppress(OSError):
            now = hash_file(file) if file.is_file() else ""  # a record may name a device, which has no end
        if now != digest:
            changed.append(place)
    return changed


def needed_before(session: Session) -> set[str]:
    """Return the keys of the stages that earlier runs of a suite needed, quick runs aside."""
    runs = runs_of(str(session.suite.path), all_runs(session.store))
    real = [record for record in runs if QUICK not in record.results.overrides]
    return {key for record in real for cell in record.cells for key in cell.needs}


def no_run(name: str, store: Store, records: Sequence[RunRecord]) -> UserError:
    """Return the error that no run has this name or file; it lists what there is."""
    latest = list(reversed(records))
    known = list(dict.fromkeys([*(record.results.suite for record in latest), *(record.id for record in latest)]))
    more = f" and {len(known) - _MOST} more, see `bench runs`" if len(known) > _MOST else ""
    listed = f"; there are: {', '.join(known[:_MOST])}{more}" if known else "; this store has no runs"
    what = f"'{name}'" if not _file(name) else f"the file {_file(name)}"
    return UserError(f"no run of {what} in {store.root}{did_you_mean(name, known)}{listed}")


def saved_suite(record: RunRecord, store: Store) -> Path:
    """Return the file of the resolved suite in a run's folder.

    Raises:
        UserError: it is gone.
    """
    path = store.runs / record.id / "suite.yaml"
    if not path.is_file():
        raise UserError(f"run {record.id} has lost its suite ({path} is not there)")
    return path


def find_cell(cell_id: str, store: Store) -> tuple[RunRecord, CellRecord]:
    """Find the latest run that has a cell, and the cell.

    Raises:
        UserError: no run has it; the text names the nearest id.
    """
    known: list[str] = []
    for record in reversed(all_runs(store)):
        for cell in record.cells:
            if cell.id == cell_id:
                return record, cell
            known.append(cell.id)
    hint = did_you_mean(cell_id, known)
    where = "results.csv of `bench export RUN -o FOLDER` has their ids"
    raise UserError(f"no run in {store.root} has a cell '{cell_id}'{hint}; {where}")


def open_cell(target: str, options: Options) -> OpenedCell:
    """Open the suite of a cell with an id, or take the first cell of a suite that fits the overrides.

    Args:
        target: id of a cell of any run of the store, or a suite file or name.
        options: where store and data are. Of the overrides of a cell with an id, epochs and sets count.

    Raises:
        UserError: there is no such cell or suite.
    """
    if _CELL_ID.fullmatch(target) and not Path(target).is_file():
        overrides = options.overrides
        if overrides.seeds is not None or overrides.datasets or overrides.methods:
            raise UserError(f"'{target}' is one cell: --seeds, --datasets and --methods narrow a suite")
        store = Store(options.store)
        return reopen_cell(*find_cell(target, store), store, options)
    try:
        find_suite(target)
    except UserError as error:
        raise UserError(
            f"'{target}' is not the id of a cell (8 digits, 0-9 and a-f) and not a suite: {error}"
        ) from None
    session = open_session(target, options)
    return OpenedCell(session, session.plan.cells[0], len(session.plan.cells))


def reopen_cell(record: RunRecord, cell: CellRecord, store: Store, options: Options) -> OpenedCell:
    """Open the suite of a run, narrowed to one of its cells, with the epochs and sets of the options.

    Raises:
        UserError: the run's suite is gone, or no longer gives the cell's configuration.
    """
    only = replace(options.overrides, seeds=str(cell.seed), datasets=(cell.dataset,), methods=(cell.method,))
    only = replace(only, sets=(*only.sets, "tune=null"))  # whatever led to a trial, the grid has its configuration
    session = open_session(str(saved_suite(record, store)), replace(options, overrides=only))
    for planned in session.plan.cells:
        if planned.config_id == cell.config_id:
            return OpenedCell(session, planned)
    known = "; ".join(dict.fromkeys(planned.config_id for planned in session.plan.cells))
    raise UserError(f"the suite of run {record.id} no longer gives the configuration '{cell.config_id}', but {known}")
