"""Common parts of our uses of RDKit: its settings, SMILES, codes for enumerations, and both directions of bonds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAP_NUMBER = re.compile(r":\d+(?=\])")


@contextmanager
def rdkit_session() -> Iterator[None]:
    """Silence RDKit's log and hold it to legacy stereo perception, as OGB's features had it; both are put back.

    Without the legacy perception E and Z bonds become TRANS and CIS.
    """
    from rdkit import Chem, rdBase

    legacy = Chem.GetUseLegacyStereoPerception()
    Chem.SetUseLegacyStereoPerception(True)
    try:
        with rdBase.BlockLogs():
            yield
    finally:
        Chem.SetUseLegacyStereoPerception(legacy)


def is_word(text: str) -> bool:
    """Printable ASCII without spaces. Of any other text RDKit reads a part as SMILES, and drops the rest."""
    return text.isascii() and text.isprintable() and text != "" and " " not in text


def has_map_numbers(smiles: str) -> bool:
    """Return True if atoms are numbered, as in ``[CH3:1][OH:2]``."""
    return _MAP_NUMBER.search(smiles) is not None


def read_smiles(smiles: str) -> Any:
    """The RDKit molecule without atom map numbers, or None where RDKit cannot read it. Use it in ``rdkit_session``.

    A map number says which atom of a reaction this is, and nothing of the molecule; yet RDKit tells atoms apart by it,
    in SMILES, scaffolds and stereocentres. It also puts the atom into brackets, with its hydrogens written, which
    DrugOOD's features do not count. So a numbered molecule is read from its canonical SMILES without the numbers.
    """
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(_MAP_NUMBER.sub("", smiles))
    if molecule is None or not has_map_numbers(smiles):
        return molecule
    return Chem.MolFromSmiles(Chem.MolToSmiles(molecule))


def atoms_of(molecule: Any) -> list[Any]:
    """The atoms of a molecule. RDKit's own iteration is slower, as it asks for the length at each step."""
    return [molecule.GetAtomWithIdx(row) for row in range(molecule.GetNumAtoms())]


def bonds_of(molecule: Any) -> list[Any]:
    return [molecule.GetBondWithIdx(row) for row in range(molecule.GetNumBonds())]


def both_directions(ends: NDArray[np.int64], codes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Bonds (m, 2) with codes (m, K) as ``edge_index`` (2, 2m) and ``edge_attr`` (2m, K): each, then its reverse."""
    import numpy as np

    directed = np.stack([ends, ends[:, ::-1]], axis=1).reshape(-1, 2)
    return np.ascontiguousarray(directed.T), np.repeat(codes, 2, axis=0)


def codes(enumeration: Any, known: Mapping[str, int], other: int) -> dict[Any, int]:
    """Member of an RDKit enumeration -> its code; members that are not ``known`` by name have the code ``other``."""
    return {member: known.get(name, other) for name, member in enumeration.names.items()}
