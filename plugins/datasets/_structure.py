"""Scaffold and BRICS fragments of molecules, by RDKit."""

from __future__ import annotations

from typing import Any

from plugins.datasets._molecules import Featuriser, Molecule

_ONE_BY_ONE = 30
"""Most bonds that RDKit is let cut one by one."""


def featurise(molecule: Any, featuriser: Featuriser) -> Molecule:
    """An RDKit molecule's features, without more."""
    return Molecule(featuriser.atoms(molecule), *featuriser.bonds(molecule))


def brics_fragments(molecule: Any, featuriser: Featuriser) -> tuple[Molecule, ...]:
    """The distinct BRICS fragments of an RDKit molecule, in the order of their SMILES.

    Degen et al., *On the Art of Compiling and Using 'Drug-Like' Chemical Fragment Spaces*, ChemMedChem 2008. Where a
    bond was cut, a fragment has a dummy atom, whose atomic number has the code "anything else". A molecule that
    cannot be cut is its own only fragment.

    RDKit cuts bond after bond, in every order, which takes seconds for a peptide of 200 atoms. A molecule with more
    than 30 bonds to cut is cut at all of them at once, in milliseconds and nearly always with the same result.
    """
    from rdkit import Chem

    pieces = [Chem.MolFromSmiles(smiles) for smiles in sorted(_cut(molecule))]
    found = tuple(featurise(piece, featuriser) for piece in pieces if piece is not None and piece.GetNumAtoms())
    return found or (featurise(molecule, featuriser),)


def _cut(molecule: Any) -> set[str]:
    from rdkit import Chem
    from rdkit.Chem import BRICS

    bonds = list(BRICS.FindBRICSBonds(molecule))
    if len(bonds) <= _ONE_BY_ONE:
        return set(BRICS.BRICSDecompose(Chem.Mol(molecule)))
    pieces = Chem.MolToSmiles(BRICS.BreakBRICSBonds(molecule, bonds)).split(".")
    return {piece for piece in pieces if "*" in piece}  # without ions, as with cuts one by one
