"""The molecule sets that OGB has from MoleculeNet: tasks, columns of MoleculeNet's tables, addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
NOT_LABELS = frozenset({"mol_id", "num", "name"})
"""Columns of MoleculeNet's tables that are no labels."""
