"""The record of a run and the findings of its analyses, as its folder keeps them. No torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.analysis import Cell
from harness.errors import DataError
from harness.results.rows import CellId, RunResults
from harness.safe_io import FILE_NAME, PART, RUN_ID, csv_text, json_text, parse_json_as, shown, write_text
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


FINDING = "finding.json"
FOLDER = "analyses"


@dataclass(frozen=True)
class Finding:
    """One analysis of a run.

    Attributes:
        label: its name in the suite; ``analysis`` and ``params`` the component with its values.
        opens: what it read that no method may see: ``test labels``, oracle fields.
        columns, rows, notes: see :class:`harness.analysis.Findings`.
        figures: file names beside ``finding.json``: the same figure in several formats.
        status: ``ok`` or ``failed``, with ``reason`` and ``traceback``. One that failed for some cells alone has a
            table of the others.
    """

    label: str
    analysis: str
    params: Mapping[str, Any] = field(default_factory=dict)
    opens: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell | bool, ...], ...] = ()
    notes: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    status: str = "ok"
    reason: str = ""
    traceback: str = ""


def plain_cell(cell: Any) -> Cell:
    """Return a cell of a table as a plain value of Python's.

    Raises:
        TypeError: it is something else than a text, a number or None.
    """
    item = getattr(cell, "item", None)
    plain = item() if callable(item) and not getattr(cell, "shape", ()) else cell
    if plain is not None and not isinstance(plain, (str, int, float)):
        raise TypeError(f"a cell of a table is a text, a number or None, not {type(plain).__name__}")
    return plain


def save_finding(finding: Finding, folder: Path) -> None:
    """Write ``finding.json`` and, where there is a table, ``table.csv``."""
    for stale in folder.glob("*"):
        if stale.is_file() and stale.name not in finding.figures:
            stale.unlink()
    write_text(folder / FINDING, json_text(finding))
    if finding.columns:
        write_text(folder / "table.csv", csv_text([finding.columns, *finding.rows]))


def load_findings(run: Path) -> list[tuple[Finding, Path]]:
    """Read the analyses in a run folder with the folder of each, in the suite's order; unreadable ones are left out."""
    findings = []
    for path in sorted((run / FOLDER).glob(f"*/{FINDING}")):
        with suppress(OSError, ValueError):
            finding = parse_json_as(Finding, path.read_text(encoding="utf-8"))
            fits = all(len(row) == len(finding.columns) for row in finding.rows)
            if fits and all(FILE_NAME.fullmatch(name) for name in finding.figures):
                findings.append((finding, path.parent))
    return findings
