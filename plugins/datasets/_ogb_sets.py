"""The molecule sets that OGB has from MoleculeNet: names, numbers of tasks, and columns of MoleculeNet's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness import DataError, did_you_mean

OGB_ADDRESS = "http://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download"
MOLECULENET_ADDRESS = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets"


@dataclass(frozen=True)
class OGBSet:
    """``tasks``: number of labels; ``smiles``: names that the table's SMILES column may have; ``label``: where there is
    one task, its column, if the table has other columns as well.
    """

    tasks: int
    smiles: tuple[str, ...] = ("smiles",)
    label: str | None = None


SETS: Mapping[str, OGBSet] = {
    "bace": OGBSet(1, ("smiles", "mol"), "Class"),
    "bbbp": OGBSet(1, label="p_np"),
    "clintox": OGBSet(2),
    "hiv": OGBSet(1, label="HIV_active"),
    "muv": OGBSet(17),
    "pcba": OGBSet(128),
    "sider": OGBSet(27),
    "tox21": OGBSet(12),
    "toxcast": OGBSet(617),
}
REGRESSION = ("esol", "delaney", "freesolv", "lipo", "lipophilicity", "qm7", "qm8", "qm9")
NOT_LABELS = frozenset({"mol_id", "num", "name"})
"""Columns of MoleculeNet's tables that are no labels."""


def find_set(name: str) -> OGBSet:
    """The set of this name.

    Raises:
        DataError: there is none, or its labels are not classes.
    """
    if name in REGRESSION:
        raise DataError(
            f"dataset 'ogb': '{name}' is a regression set, and this benchmark is about classification; there are: "
            f"{', '.join(SETS)}"
        )
    if name not in SETS:
        short = name.lower().removeprefix("ogbg-").removeprefix("ogbg_").removeprefix("mol")
        raise DataError(
            f"dataset 'ogb', hyperparameter 'dataset': no set '{name}'{did_you_mean(short, SETS)}; there are: "
            f"{', '.join(SETS)}. A table of your own is read by 'use: smiles-csv'"
        )
    return SETS[name]
