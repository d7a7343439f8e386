"""DrugOOD's molecule features (Ji et al., "DrugOOD", AAAI 2023): 39 numbers per atom, 10 per bond.

They follow AttentiveFP (Xiong et al., J. Med. Chem. 2020). An atom has its element, number of bonded atoms (hydrogens
that are not written as atoms do not count), charge, radical electrons, hybridisation, whether it is aromatic, implicit
hydrogens (those that a SMILES writes, as in ``[nH]``, do not count), and whether it may be or is an R or S centre.
A bond has its type, whether it is conjugated or in a ring, and its stereo (none, any, Z, E). A molecule with an atom or
bond beyond these tables is refused, as in DrugOOD.

CIP labels and E/Z are those of RDKit's legacy stereo perception, whatever RDKit is set to: the new one sets no CIP
labels, and its CIS and TRANS are taken with respect to other neighbours than Z and E.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from harness import Features
from plugins.datasets._molecules import UnusableMolecule
from plugins.datasets._rdkit import atoms_of, bonds_of, both_directions, codes, rdkit_session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ATOM_WIDTH, BOND_WIDTH = 39, 10
ELEMENTS = ("B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "As", "Se", "Br", "Te", "I", "At")
OTHER_ELEMENT = 15
DEGREE, MOST_NEIGHBOURS = 16, 5
CHARGE, RADICALS = 22, 23
HYBRIDISATION = {"SP": 24, "SP2": 25, "SP3": 26, "SP3D": 27, "SP3D2": 28}
OTHER_HYBRIDISATION = 29
AROMATIC = 30
HYDROGENS, MOST_HYDROGENS = 31, 4
POSSIBLE_CENTRE = 36
LABELS = {"R": 37, "S": 38}

BOND_TYPE = {"SINGLE": 0, "DOUBLE": 1, "TRIPLE": 2, "AROMATIC": 3}
CONJUGATED, IN_RING = 4, 5
STEREO = {"STEREONONE": 6, "STEREOANY": 7, "STEREOZ": 8, "STEREOE": 9}
NOT_LEGACY = frozenset({"STEREOCIS", "STEREOTRANS"})
_REFUSED = -1


class DrugOODFeaturiser:
    """Turns RDKit molecules into DrugOOD's arrays, float32."""

    node_features: ClassVar[Features] = Features("numeric", (ATOM_WIDTH,))
    edge_features: ClassVar[Features] = Features("numeric", (BOND_WIDTH,))

    def __init__(self) -> None:
        from rdkit import Chem

        self._element = {symbol: place for place, symbol in enumerate(ELEMENTS)}
        self._hybridisation = codes(Chem.HybridizationType, HYBRIDISATION, OTHER_HYBRIDISATION)
        self._type = codes(Chem.BondType, BOND_TYPE, _REFUSED)
        self._stereo = codes(Chem.BondStereo, STEREO, _REFUSED)
        self._not_legacy = {member for name, member in Chem.BondStereo.names.items() if name in NOT_LEGACY}

    def atoms(self, molecule: Any) -> NDArray[np.float32]:
        """(n, 39) features."""
        import numpy as np

        perceived = legacy_stereo(molecule)  # an atom lives as long as its molecule
        atoms = atoms_of(perceived)
        x = np.zeros((len(atoms), ATOM_WIDTH), dtype=np.float32)
        ones = [row * ATOM_WIDTH + column for row, atom in enumerate(atoms) for column in self._columns(row, atom)]
        x.reshape(-1)[ones] = 1
        x[:, CHARGE] = [atom.GetFormalCharge() for atom in atoms]
        x[:, RADICALS] = [atom.GetNumRadicalElectrons() for atom in atoms]
        return x

    def bonds(self, molecule: Any) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """``edge_index`` (2, 2m) and (2m, 10) features: each bond, then its reverse."""
        import numpy as np

        bonds = bonds_of(molecule)
        if any(bond.GetStereo() in self._not_legacy for bond in bonds):
            molecule = legacy_stereo(molecule)
            bonds = bonds_of(molecule)
        features = np.zeros((len(bonds), BOND_WIDTH), dtype=np.float32)
        rows = np.arange(len(bonds))
        features[rows, [self._type_of(row, bond) for row, bond in enumerate(bonds)]] = 1
        features[rows, [self._stereo_of(row, bond) for row, bond in enumerate(bonds)]] = 1
        features[:, CONJUGATED] = [bond.GetIsConjugated() for bond in bonds]
        features[:, IN_RING] = [bond.IsInRing() for bond in bonds]
        ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds]
        return both_directions(np.array(ends, dtype=np.int64).reshape(-1, 2), features)

    def _columns(self, row: int, atom: Any) -> list[int]:
        """The columns that are 1 for an atom."""
        degree, hydrogens = atom.GetDegree(), atom.GetNumImplicitHs()
        if degree > MOST_NEIGHBOURS:
            raise UnusableMolecule(f"{_named(row, atom)} has {degree} neighbours, and there are features for up to 5")
        if hydrogens > MOST_HYDROGENS:
            raise UnusableMolecule(
                f"{_named(row, atom)} has {hydrogens} implicit hydrogens, and there are features for up to 4"
            )
        found = [
            self._element.get(atom.GetSymbol(), OTHER_ELEMENT),
            DEGREE + degree,
            self._hybridisation[atom.GetHybridization()],
            HYDROGENS + hydrogens,
        ]
        if atom.GetIsAromatic():
            found.append(AROMATIC)
        if atom.HasProp("_ChiralityPossible"):
            found.append(POSSIBLE_CENTRE)
            if atom.HasProp("_CIPCode"):
                found.append(LABELS[atom.GetProp("_CIPCode")])
        return found

    def _type_of(self, row: int, bond: Any) -> int:
        column = self._type[bond.GetBondType()]
        if column == _REFUSED:
            raise UnusableMolecule(f"bond {row} is of type {bond.GetBondType()}, for which there are no features")
        return column

    def _stereo_of(self, row: int, bond: Any) -> int:
        column = self._stereo[bond.GetStereo()]
        if column == _REFUSED:
            raise UnusableMolecule(f"bond {row} has the stereo {bond.GetStereo()}, for which there are no features")
        return column


def legacy_stereo(molecule: Any) -> Any:
    """A copy of an RDKit molecule with stereo perceived in the legacy way; RDKit's setting is put back."""
    from rdkit import Chem

    copy = Chem.Mol(molecule)
    with rdkit_session():
        Chem.AssignStereochemistry(copy, cleanIt=True, force=True, flagPossibleStereoCenters=True)
    return copy


def _named(row: int, atom: Any) -> str:
    return f"atom {row} ({atom.GetSymbol()})"
