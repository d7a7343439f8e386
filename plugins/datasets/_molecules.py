"""The common form of all sources of molecules, and featurisers of RDKit molecules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from harness import Features

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Labels = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Molecule:
    """One featurised molecule: ``x`` (n, F), ``edge_index`` (2, m) int64, ``edge_attr`` (m, K).

    The features are int64 codes or float32 numbers, as the featuriser has them. ``scaffold`` (SMILES, '' without
    rings) and ``fragments`` are there where they were asked for. ``smiles`` is canonical, by which molecules are
    compared, or None where it is not known; ``mapped`` says that atom map numbers were cleared.
    """

    x: NDArray[Any]
    edge_index: NDArray[np.int64]
    edge_attr: NDArray[Any]
    scaffold: str | None = None
    fragments: tuple[Molecule, ...] = ()
    smiles: str | None = None
    mapped: bool = False


class UnusableMolecule(Exception):
    """A featuriser has no features for this molecule; the text is the reason, such as "atom 3 has 7 neighbours"."""


class Featuriser(Protocol):
    """Turns RDKit molecules into arrays; made without arguments, used inside ``rdkit_session``.

    ``node_features`` and ``edge_features`` are read from the class at planning, so its module imports no RDKit.
    """

    node_features: ClassVar[Features]
    edge_features: ClassVar[Features]

    def atoms(self, molecule: Any) -> NDArray[Any]:
        """(n, F) features in the order of the molecule's atoms."""

    def bonds(self, molecule: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """``edge_index`` (2, 2m) and features (2m, K): each bond, then its reverse."""


@dataclass(frozen=True)
class MoleculeSet:
    """Molecules by row, with their labels and splits.

    Attributes:
        molecules: row -> molecule, without the rows that were left out.
        labels: for each row T numbers: the class, or NaN where not measured.
        splits: split name -> rows, ascending; rows without a molecule may be among them.
        skipped: row -> text, of the rows left out, with the reason.
        facts: what else is worth telling, as JSON.
        environments: row -> the environment that the data name, for rows that have one.
        lines: of the file, one for each row, where rows have lines.
    """

    molecules: Mapping[int, Molecule]
    labels: Labels
    splits: Mapping[str, Sequence[int]]
    skipped: Mapping[int, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    environments: Mapping[int, int] = field(default_factory=dict)
    lines: Sequence[int] = ()


def scaffolds_of(molecules: Mapping[int, Molecule]) -> dict[int, str]:
    """Row -> scaffold, of molecules for which scaffolds were asked."""
    return {row: molecule.scaffold for row, molecule in molecules.items() if molecule.scaffold is not None}


def tell_failures(failures: Mapping[int, str], lines: Sequence[int]) -> dict[int, str]:
    """Failures by row of a table as texts that name row and line, if rows have lines; rows in texts count from 1."""
    return {row: f"row {row + 1}{f' (line {lines[row]})' if lines else ''}: {why}" for row, why in failures.items()}
