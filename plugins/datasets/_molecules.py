"""What every source of molecules hands over, and how binary labels are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from harness import DataError

MISSING = frozenset({"", "nan", "na", "none", "null"})


@dataclass(frozen=True)
class Molecule:
    """One featurised molecule: ``x`` (n, 9), ``edge_index`` (2, m), ``edge_attr`` (m, 3), all int64."""

    x: NDArray[np.int64]
    edge_index: NDArray[np.int64]
    edge_attr: NDArray[np.int64]


@dataclass(frozen=True)
class MoleculeSet:
    """Molecules by row, with their labels and splits.

    Attributes:
        molecules: row -> molecule, without the rows that were left out.
        labels: (rows, T) float32, 0, 1 or NaN where not measured.
        splits: split name -> rows, ascending.
        skipped: the rows left out, each with its reason.
        facts: what else is worth telling, as JSON.
    """

    molecules: Mapping[int, Molecule]
    labels: NDArray[np.float32]
    splits: Mapping[str, Sequence[int]]
    skipped: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """Where molecules come from."""

    def files(self) -> list[Path]:
        """The input files; a missing one is a ``DataError``."""

    def tasks(self) -> tuple[str, ...]:
        """Names of the label columns; cheap."""

    def read(self) -> MoleculeSet:
        """Everything."""


def keep_labelled(found: MoleculeSet) -> MoleculeSet:
    """The same set without molecules whose only label is missing; a multi-task set keeps all.

    Raises:
        DataError: a split has no molecule.
    """
    dropped: set[int] = set()
    if found.labels.shape[1] == 1:
        dropped = {row for row in found.molecules if np.isnan(found.labels[row, 0])}
    splits = {name: [row for row in rows if row not in dropped] for name, rows in found.splits.items()}
    empty = [name for name, rows in splits.items() if not rows]
    if empty:
        raise DataError(f"no labelled molecule is left in {' and '.join(empty)}")
    skipped = [*found.skipped, *(f"row {row + 1}: no label" for row in sorted(dropped))]
    return replace(found, splits=splits, skipped=skipped)


def parse_labels(path: Path, rows: Sequence[Sequence[str]], names: Sequence[str]) -> NDArray[np.float32]:
    """Text cells (rows, T) as 0, 1 or NaN.

    Raises:
        DataError: a cell is something else, as in a regression column; the text names column and row.
    """
    known: dict[str, float] = {}
    labels = np.empty((len(rows), len(names)), dtype=np.float32)
    for number, row in enumerate(rows):
        for column, cell in enumerate(row):
            if cell not in known:
                value = _label(cell)
                if value is None:
                    raise DataError(_not_a_label(path, names[column], number + 1, cell))
                known[cell] = value
            labels[number, column] = known[cell]
    return labels


def _label(cell: str) -> float | None:
    text = cell.strip().lower()
    if text in MISSING:
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value in (0.0, 1.0) else None


def _not_a_label(path: Path, name: str, row: int, cell: str) -> str:
    return (
        f"{path}: column '{name}', row {row}: found {cell[:40]!r}, but a label is 0, 1 or empty; this is not a binary "
        "classification column (regression is not supported). Name the label columns with 'label_columns: [...]'"
    )
