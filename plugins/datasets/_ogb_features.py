"""OGB's molecule features (Hu et al., "Open Graph Benchmark", NeurIPS 2020): nine codes per atom, three per bond.

Atom codes: atomic number, chirality, degree, formal charge, hydrogens, radical electrons, hybridisation, aromatic, in
a ring. Bond codes: type, stereo, conjugated. The last code of a column stands for "anything else", where there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from harness import Features
from plugins.datasets._rdkit import atoms_of, bonds_of, both_directions, codes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ATOM_SIZES = (119, 5, 12, 12, 10, 6, 6, 2, 2)
BOND_SIZES = (5, 6, 2)

CHIRALITY = {"CHI_UNSPECIFIED": 0, "CHI_TETRAHEDRAL_CW": 1, "CHI_TETRAHEDRAL_CCW": 2, "CHI_OTHER": 3}
HYBRIDISATION = {"SP": 0, "SP2": 1, "SP3": 2, "SP3D": 3, "SP3D2": 4}
BOND_TYPE = {"SINGLE": 0, "DOUBLE": 1, "TRIPLE": 2, "AROMATIC": 3}
STEREO = {"STEREONONE": 0, "STEREOZ": 1, "STEREOE": 2, "STEREOCIS": 3, "STEREOTRANS": 4, "STEREOANY": 5}
OTHER_STEREO = 5
"""OGB has no code for stereo types that RDKit gained later (atropisomers): they are read as "any"."""


class OGBFeaturiser:
    """Turns RDKit molecules into OGB's codes. Use it inside ``rdkit_session``."""

    node_features: ClassVar = Features("categorical", ATOM_SIZES)
    edge_features: ClassVar = Features("categorical", BOND_SIZES)

    def __init__(self) -> None:
        from rdkit import Chem

        self._chirality = codes(Chem.ChiralType, CHIRALITY, 4)
        self._hybridisation = codes(Chem.HybridizationType, HYBRIDISATION, 5)
        self._type = codes(Chem.BondType, BOND_TYPE, 4)
        self._stereo = codes(Chem.BondStereo, STEREO, OTHER_STEREO)

    def atoms(self, molecule: Any) -> NDArray[np.int64]:
        """(n, 9) codes."""
        import numpy as np

        rows = [self._atom(atom) for atom in atoms_of(molecule)]
        return np.array(rows, dtype=np.int64).reshape(-1, len(ATOM_SIZES))

    def bonds(self, molecule: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """``edge_index`` (2, 2m) and codes (2m, 3): each bond, then its reverse."""
        import numpy as np

        ends, rows = [], []
        for bond in bonds_of(molecule):
            ends.append((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))
            rows.append((self._type[bond.GetBondType()], self._stereo[bond.GetStereo()], int(bond.GetIsConjugated())))
        return both_directions(
            np.array(ends, dtype=np.int64).reshape(-1, 2), np.array(rows, dtype=np.int64).reshape(-1, 3)
        )

    def _atom(self, atom: Any) -> tuple[int, ...]:
        number, charge = atom.GetAtomicNum(), atom.GetFormalCharge()
        return (
            number - 1 if 1 <= number <= 118 else 118,
            self._chirality[atom.GetChiralTag()],
            min(atom.GetTotalDegree(), 11),
            charge + 5 if -5 <= charge <= 5 else 11,
            min(atom.GetTotalNumHs(), 9),
            min(atom.GetNumRadicalElectrons(), 5),
            self._hybridisation[atom.GetHybridization()],
            int(atom.GetIsAromatic()),
            int(atom.IsInRing()),
        )
