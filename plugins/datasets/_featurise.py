"""One SMILES to a featurised molecule, or to the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness import DataError
from plugins.datasets._molecules import Featuriser, Molecule, UnusableMolecule
from plugins.datasets._rdkit import has_map_numbers, is_word, rdkit_session, read_smiles
from plugins.datasets._table import is_missing

FEATURISERS = ("ogb", "drugood")
Scaffolds = Literal["none", "chiral", "flat"]


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
    """The class of a featuriser, whose ``node_features`` and ``edge_features`` are known without RDKit.

    Raises:
        DataError: there is no such featuriser.
    """
    if name == "ogb":
        from plugins.datasets._ogb_features import OGBFeaturiser

        return OGBFeaturiser
    if name == "drugood":
        from plugins.datasets._drugood_features import DrugOODFeaturiser

        return DrugOODFeaturiser
    raise DataError(f"no featuriser '{name}'; there are: {', '.join(FEATURISERS)}")


def featurise_each(smiles: Sequence[str], wanted: Wanted) -> list[Molecule | str]:
    """For each SMILES the molecule, or the reason why there is none. In this process."""
    with rdkit_session():
        featuriser = featuriser_class(wanted.featuriser)()
        return [featurise_one(text, wanted, featuriser) for text in smiles]


def featurise_one(smiles: str, wanted: Wanted, featuriser: Featuriser) -> Molecule | str:
    from rdkit import Chem

    from plugins.datasets._scaffold import scaffold
    from plugins.datasets._structure import brics_fragments

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
