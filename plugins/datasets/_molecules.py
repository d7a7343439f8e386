"""What every source of molecules hands over, and how binary labels are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from harness import DataError, Features

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Labels = Sequence[Sequence[float]]
MISSING = frozenset({"", "nan", "na", "none", "null"})


@dataclass(frozen=True)
class Molecule:
    """One featurised molecule: ``x`` (n, F), ``edge_index`` (2, m) int64, ``edge_attr`` (m, K).

    The features are int64 codes or float32 numbers, as the featuriser has them. ``scaffold`` (SMILES, '' without
    rings) and ``fragments`` are there where they were asked for.
    """

    x: NDArray[Any]
    edge_index: NDArray[np.int64]
    edge_attr: NDArray[Any]
    scaffold: str | None = None
    fragments: tuple[Molecule, ...] = ()


class UnusableMolecule(Exception):
    """A featuriser has no features for this molecule; the text is the reason, such as "atom 3 has 7 neighbours"."""


class Featuriser(Protocol):
    """Turns RDKit molecules into arrays; made without arguments, used inside ``rdkit_session``.

    ``node_features`` and ``edge_features`` are read from the class at planning, so its module imports no RDKit.
    """

    node_features: ClassVar[Features]
    edge_features: ClassVar[Features]

    def atoms(self, molecule: Any) -> NDArray[Any]:
        """(n, F) features in the order of the molecule's atoms.

        Raises:
            UnusableMolecule: the molecule cannot be described.
        """

    def bonds(self, molecule: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """``edge_index`` (2, 2m) and features (2m, K): each bond, then its reverse.

        Raises:
            UnusableMolecule: the molecule cannot be described.
        """


@dataclass(frozen=True)
class MoleculeSet:
    """Molecules by row, with their labels and splits.

    Attributes:
        molecules: row -> molecule, without the rows that were left out.
        labels: for each row T numbers: 0, 1, or NaN where not measured.
        splits: split name -> rows, ascending.
        skipped: the rows left out, each with its reason.
        facts: what else is worth telling, as JSON.
    """

    molecules: Mapping[int, Molecule]
    labels: Labels
    splits: Mapping[str, Sequence[int]]
    skipped: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """Where molecules come from."""

    @property
    def where(self) -> Path:
        """The file or folder, for messages."""

    def files(self) -> list[Path]:
        """The input files; a missing one is a ``DataError``."""

    def tasks(self) -> tuple[str, ...]:
        """Names of the label columns; cheap."""

    def read(self) -> MoleculeSet:
        """Everything."""


def keep_labelled(found: MoleculeSet, where: Path) -> MoleculeSet:
    """The same set without molecules whose only label is missing; a multi-task set keeps all.

    Raises:
        DataError: a split has no molecule.
    """
    dropped = {row for row in found.molecules if len(found.labels[row]) == 1 and math.isnan(found.labels[row][0])}
    splits = {name: [row for row in rows if row not in dropped] for name, rows in found.splits.items()}
    empty = [name for name, rows in splits.items() if not rows]
    if empty:
        raise DataError(f"{where}: no labelled molecule is left in {' and '.join(empty)}")
    skipped = [*found.skipped, *(f"row {row + 1}: no label" for row in sorted(dropped))]
    return replace(found, splits=splits, skipped=skipped)


def parse_labels(path: Path, rows: Sequence[Sequence[str]], names: Sequence[str]) -> Labels:
    """Text cells (rows, T) as 0, 1 or NaN.

    Raises:
        DataError: a cell is something else, as in a regression column; the text names column and row.
    """
    known: dict[str, float] = {}
    for number, row in enumerate(rows, start=1):
        for name, cell in zip(names, row, strict=True):
            if cell not in known:
                value = _label(cell)
                if value is None:
                    raise DataError(_not_a_label(path, name, number, cell))
                known[cell] = value
    return [[known[cell] for cell in row] for row in rows]


def _label(cell: str) -> float | None:
    text = cell.strip().lower()
    if text in MISSING:
        return math.nan
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
