"""SMILES to featurised molecules: one bad molecule is one failure, and never moves or ends anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness import DataError
from plugins.datasets._molecules import Featuriser, Molecule, UnusableMolecule
from plugins.datasets._names import is_word
from plugins.datasets._rdkit import has_map_numbers, rdkit_session, read_smiles
from plugins.datasets._table import is_missing

FEATURISERS = ("ogb", "drugood")
Scaffolds = Literal["none", "chiral", "flat"]
_WORTH = 150_000
"""Characters of SMILES from which on processes of their own are faster; about two seconds of work."""


@dataclass(frozen=True)
class Wanted:
    """What to find out about each molecule.

    Attributes:
        featuriser: a name in ``FEATURISERS``.
        scaffolds: Bemis-Murcko scaffolds with chirality, as OGB has them, or ``flat``, as DrugOOD and GOOD have them.
        fragments: BRICS fragments.
    """

    featuriser: str = "ogb"
    scaffolds: Scaffolds = "none"
    fragments: bool = False


@dataclass(frozen=True)
class Featurised:
    """``molecules`` by row, and the ``failures``: row -> why it is not among them. Rows ascend in both."""

    molecules: dict[int, Molecule]
    failures: dict[int, str]


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


def featurise_smiles(smiles: Sequence[str], wanted: Wanted, processes: int | None = None) -> Featurised:
    """Featurise molecules, many of them in processes of their own.

    The result does not depend on the number of processes. In processes of their own, a molecule that ends the
    process (a crash in RDKit's native code) is one more failure; a small set is done here, where it would end this
    process.

    Args:
        smiles: one per molecule.
        wanted: what to find out.
        processes: how many processes; 0 is this one; chosen by the amount of work when absent.
    """
    from plugins.datasets._smiles_pool import available_cores, in_processes

    if processes is None:
        work = sum(map(len, smiles)) * (10 if wanted.fragments else 1)
        processes = available_cores() if work >= _WORTH else 0
    found = in_processes(smiles, wanted, processes) if processes else featurise_each(smiles, wanted)
    return Featurised(
        {row: result for row, result in enumerate(found) if isinstance(result, Molecule)},
        {row: result for row, result in enumerate(found) if isinstance(result, str)},
    )


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
