"""What RDKit finds in a molecule beside its features: scaffold and BRICS fragments."""

from __future__ import annotations

from typing import Any

from plugins.datasets._molecules import Featuriser, Molecule


def featurise(molecule: Any, featuriser: Featuriser) -> Molecule:
    """An RDKit molecule's features, without more."""
    return Molecule(featuriser.atoms(molecule), *featuriser.bonds(molecule))


def brics_fragments(molecule: Any, featuriser: Featuriser) -> tuple[Molecule, ...]:
    """The distinct BRICS fragments of an RDKit molecule, in the order of their SMILES.

    Degen et al., *On the Art of Compiling and Using 'Drug-Like' Chemical Fragment Spaces*, ChemMedChem 2008. Where a
    bond was cut, a fragment has a dummy atom, whose atomic number has the code "anything else". A molecule that
    cannot be cut is its own only fragment.
    """
    from rdkit import Chem
    from rdkit.Chem import BRICS

    pieces = [Chem.MolFromSmiles(smiles) for smiles in sorted(BRICS.BRICSDecompose(Chem.Mol(molecule)))]
    found = tuple(featurise(piece, featuriser) for piece in pieces if piece is not None and piece.GetNumAtoms())
    return found or (featurise(molecule, featuriser),)
