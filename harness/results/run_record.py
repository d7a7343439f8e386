"""The record of one run, as its folder keeps it: with the store, all that a report needs. No torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import DataError
from harness.results.cell import CellId
from harness.results.rows import RunResults
from harness.safe_io import PART, RUN_ID, json_text, parse_json_as, shown, write_text
from harness.store import Failure

RECORD = "run.json"
RESULTS = "results.json"
PAGE = "report.html"


def path_text(path: Path) -> str:
    """Return a file as a record names it: absolute, with links followed, and what is no UTF-8 escaped."""
    return os.fsencode(path.resolve()).decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class CellRecord(CellId):
    """One cell as a run folder keeps it.

    Attributes:
        id: short digest that commands accept; ``hyperparameters`` the tuned values by axis.
        train, score: keys of its last two stages.
        needs: key -> title of every stage it builds on, inputs first.
    """

    id: str
    hyperparameters: Mapping[str, Any]
    train: str
    score: str
    needs: Mapping[str, str]


@dataclass(frozen=True)
class RunRecord:
    """One run.

    Attributes:
        id: name of its folder.
        suite_path: the suite's file, see :func:`path_text`.
        suite_files: digests of the suite's files, see :func:`harness.suite.files.digests`, and the files that
            its datasets name by an absolute path.
        installed: the name of the suite, where it came with the package.
        results: everything a report knows before there are rows.
        cells: all cells, in the order of the file.
        prepared: dataset label -> key of its prepared data.
        status: ``running``, ``finished``, ``failed`` (some cells) or ``interrupted``.
        failures: stage key -> why it has no artifact, also where the store does not keep that.
        provenance: machine, versions, state of the repository, command line.
        facts: seconds, counts of stages, ``lost``: configurations that lack values, a line each.
    """

    id: str
    suite_path: str
    results: RunResults
    cells: tuple[CellRecord, ...]
    prepared: Mapping[str, str]
    started: str
    status: str = "running"
    failures: Mapping[str, Failure] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    suite_files: Mapping[str, str] = field(default_factory=dict)
    installed: str = ""

    def save(self, folder: Path) -> None:
        """Write ``run.json``, whole or not at all."""
        write_text(folder / RECORD, json_text(self, indent=None))

    @classmethod
    def load(cls, folder: Path) -> RunRecord:
        """Read what :meth:`save` wrote.

        Raises:
            DataError: there is no readable record.
        """
        path = folder / RECORD
        try:
            record = parse_json_as(cls, path.read_text(encoding="utf-8"))
            record.results.check_labels()
            _check(record)
            return record
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: not a readable run record ({type(error).__name__}: {error})") from error


def _check(record: RunRecord) -> None:
    """Refuse a record whose names would lead elsewhere, which may be another's.

    Raises:
        ValueError: it is so.
    """
    if not RUN_ID.fullmatch(record.id):
        raise ValueError(f"{shown(record.id)} cannot be the name of a run")
    if "\0" in record.suite_path:
        raise ValueError(f"{shown(record.suite_path)} cannot be a file")
    parts = {*record.prepared.values(), *record.failures}
    for cell in record.cells:
        parts |= {cell.id, cell.train, cell.score, *cell.needs}
    wrong = next((part for part in parts if not PART.fullmatch(part)), None)
    if wrong is not None:
        raise ValueError(f"{shown(wrong)} cannot be a key")
