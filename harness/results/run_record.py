"""The record of one run: what its folder must hold so that a report needs nothing else. No torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import DataError
from harness.results.cell import CellId
from harness.results.rows import RunResults, dumps, loads
from harness.safe_io import PART, RUN_ID, check_types, read_text, shown, write_text

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
        suite_files: what the suite was made of, see :func:`harness.suite.files.digests`, and the files that
            its datasets name by an absolute path.
        installed: the name of the suite, where it came with the package.
        results: everything a report knows before there are rows.
        cells: all cells, in the order of the file.
        prepared: dataset label -> key of its prepared data.
        status: ``running``, ``finished``, ``failed`` (some cells) or ``interrupted``.
        failures: stage key -> the fields of a :class:`harness.store.stage.Failure`, also where the store does not
            keep it.
        provenance: machine, versions, state of the repository, command line.
        facts: seconds, counts of stages.
    """

    id: str
    suite_path: str
    results: RunResults
    cells: tuple[CellRecord, ...]
    prepared: Mapping[str, str]
    started: str
    status: str = "running"
    failures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    suite_files: Mapping[str, str] = field(default_factory=dict)
    installed: str = ""

    def save(self, folder: Path) -> None:
        """Write ``run.json``, whole or not at all."""
        data = {**vars(self), "results": self.results.to_json(), "cells": [vars(cell) for cell in self.cells]}
        write_text(folder / RECORD, dumps(data, indent=None))

    @classmethod
    def load(cls, folder: Path) -> RunRecord:
        """Read what :meth:`save` wrote.

        Raises:
            DataError: there is no readable record.
        """
        path = folder / RECORD
        try:
            data = loads(read_text(path))
            check_types(cls, [data])
            check_types(CellRecord, data["cells"])
            data["results"] = RunResults.from_json(data["results"])
            data["cells"] = tuple(CellRecord(**cell) for cell in data["cells"])
            record = cls(**data)
            _check(record)
            return record
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: not a readable run record ({type(error).__name__}: {error})") from error


def _check(record: RunRecord) -> None:
    """Refuse a record whose names would lead elsewhere, or whose failures are none: it may be another's.

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
    wrong = next((part for part in parts if not (isinstance(part, str) and PART.fullmatch(part))), None)
    if wrong is not None:
        raise ValueError(f"{shown(wrong)} cannot be a key")
    for failure in record.failures.values():
        if set(failure) != {"status", "reason", "traceback", "since"}:
            raise ValueError("a failure has other keys than status, reason, traceback and since")
        if not all(isinstance(text, str) for text in failure.values()):
            raise ValueError("a failure holds something else than texts")
