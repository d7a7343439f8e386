"""One SMILES to a featurised molecule, or to the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from plugins.datasets._drugood_features import DrugOODFeaturiser
from plugins.datasets._molecules import Featuriser, Molecule, UnusableMolecule
from plugins.datasets._ogb_features import OGBFeaturiser
from plugins.datasets._rdkit import has_map_numbers, is_word, rdkit_session, read_smiles
from plugins.datasets._table import is_missing

FEATURISERS = ("ogb", "drugood")
Scaffolds = Literal["none", "chiral", "flat"]
_ONE_BY_ONE = 12
"""Most bonds that RDKit is let cut one by one."""


@dataclass(frozen=True)
class Wanted:
    """The facts wanted of each molecule.

    Attributes:
        featuriser: a name in ``FEATURISERS``.
        scaffolds: Bemis-Murcko scaffolds with chirality, as OGB has them, or ``flat``, as DrugOOD and GOOD have them.
        fragments: BRICS fragments.
    """

    featuriser: str = "ogb"
    scaffolds: Scaffolds = "none"
    fragments: bool = False


def featuriser_class(name: str) -> type[Featuriser]:
    """The class of a featuriser, whose ``node_features`` and ``edge_features`` are known without RDKit."""
    return DrugOODFeaturiser if name == "drugood" else OGBFeaturiser


def featurise_each(smiles: Sequence[str], wanted: Wanted) -> list[Molecule | str]:
    """For each SMILES the molecule, or the reason why there is none. In this process."""
    with rdkit_session():
        featuriser = featuriser_class(wanted.featuriser)()
        return [featurise_one(text, wanted, featuriser) for text in smiles]


def featurise_one(smiles: str, wanted: Wanted, featuriser: Featuriser) -> Molecule | str:
    from rdkit import Chem

    from plugins.datasets._scaffold import scaffold

    if is_missing(smiles):
        return "no SMILES"
    try:
        molecule = read_smiles(smiles)
        if molecule is None or molecule.GetNumAtoms() == 0:
            return f"RDKit cannot read the SMILES {smiles[:80]!r}"
        if not is_word(smiles):
            return (
                f"RDKit reads only a part of the SMILES {smiles[:80]!r}: it has white space or other signs of no SMILES"
            )
        return Molecule(
            featuriser.atoms(molecule),
            *featuriser.bonds(molecule),
            None if wanted.scaffolds == "none" else scaffold(molecule, wanted.scaffolds == "chiral"),
            brics_fragments(molecule, featuriser) if wanted.fragments else (),
            Chem.MolToSmiles(molecule),
            has_map_numbers(smiles),
        )
    except UnusableMolecule as error:
        return f"{error}, in the SMILES {smiles[:80]!r}"
    except (MemoryError, ImportError):  # these say nothing of the molecule
        raise
    except Exception as error:  # whatever RDKit raises for one molecule must not lose the others
        return f"RDKit fails on the SMILES {smiles[:80]!r}: {' '.join(str(error).split())[:120]}"


def brics_fragments(molecule: Any, featuriser: Featuriser) -> tuple[Molecule, ...]:
    """The distinct BRICS fragments of an RDKit molecule, in the order of their SMILES.

    Degen et al., *On the Art of Compiling and Using 'Drug-Like' Chemical Fragment Spaces*, ChemMedChem 2008. Where a
    bond was cut, a fragment has a dummy atom, whose atomic number has the code "anything else". A molecule that
    cannot be cut is its own only fragment.

    RDKit cuts bond after bond, in every order: a ring of twelve amino acids, with 15 bonds to cut, takes 18 seconds and
    0.9 GB, cyclic peptides of DrugOOD's EC50 minutes and 8 GB. A molecule with more than 12 is cut at all of them at
    once, in milliseconds; its fragments may differ in a double bond or in chirality.
    """
    from rdkit import Chem

    pieces = [Chem.MolFromSmiles(smiles) for smiles in sorted(_cut(molecule))]
    usable = [piece for piece in pieces if piece is not None and piece.GetNumAtoms()]
    return tuple(Molecule(featuriser.atoms(piece), *featuriser.bonds(piece)) for piece in usable or [molecule])


def _cut(molecule: Any) -> set[str]:
    from rdkit import Chem
    from rdkit.Chem import BRICS

    bonds = list(BRICS.FindBRICSBonds(molecule))
    if len(bonds) <= _ONE_BY_ONE:
        return set(BRICS.BRICSDecompose(Chem.Mol(molecule)))
    pieces = Chem.MolToSmiles(BRICS.BreakBRICSBonds(molecule, bonds)).split(".")
    return {piece for piece in pieces if "*" in piece}  # without ions, as with cuts one by one
