"""OGB's scaffold split: molecules with one Bemis-Murcko scaffold stay together, rare scaffolds go to the test split.

The rule is that of the Open Graph Benchmark (Hu et al., NeurIPS 2020) and gives its index files exactly where equally
frequent scaffolds are taken in its order, which is that of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

from harness import DataError
from plugins.datasets._splits import SPLITS

OGB_SHARES: Mapping[str, float] = MappingProxyType({"train": 0.8, "val": 0.1, "test": 0.1})


@dataclass(frozen=True)
class ScaffoldSplit:
    """``rows`` of each split, ascending; ``largest`` scaffold group; ``warnings``, one sentence each."""

    rows: Mapping[str, list[int]]
    groups: int
    largest: int
    warnings: list[str]

    @property
    def facts(self) -> dict[str, Any]:
        """For people, as JSON."""
        return {"scaffolds": self.groups, "largest_scaffold": self.largest, "warnings": self.warnings}


def scaffold(molecule: Any, chirality: bool = True) -> str:
    """The Murcko scaffold of an RDKit molecule as SMILES; '' for a molecule without rings."""
    from rdkit.Chem.Scaffolds import MurckoScaffold

    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=molecule, includeChirality=chirality))


def scaffold_split(
    scaffolds: Mapping[int, str],
    total: int,
    shares: Mapping[str, float] = OGB_SHARES,
    *,
    ties: Literal["rows", "smiles"] = "rows",
) -> ScaffoldSplit:
    """Split rows by scaffold: the largest groups first, into train, then validation, then test.

    Args:
        scaffolds: row -> scaffold, without rows that could not be read.
        total: number of rows, including those: OGB counts them, as part of the test split.
        shares: split name -> share of the rows; the sum is 1.
        ties: which of two equally frequent scaffolds comes first: with ``rows`` that of the later first row, as in
            OGB's index files; with ``smiles`` that of the smaller SMILES, so that the order of rows does not matter.
    """
    groups: dict[str, list[int]] = {}
    for row in sorted(scaffolds):
        groups.setdefault(scaffolds[row], []).append(row)
    by_smiles = [groups[name] for name in sorted(groups)]
    ordered = sorted(by_smiles, key=lambda rows: (-len(rows), -rows[0] if ties == "rows" else 0))
    rows: dict[str, list[int]] = {name: [] for name in SPLITS}
    room = {name: Fraction(str(share)) * total for name, share in shares.items()}
    warnings = []
    for group in ordered:
        name = _place(len(group), len(rows["train"]), len(rows["val"]), room)
        rows[name] += group
        if len(group) > room[name]:
            warnings.append(_oversized(scaffolds[group[0]], len(group), name, shares[name], total))
    empty = [name for name in SPLITS if not rows[name]]
    if empty:
        why = f"; {warnings[0]}" if warnings else ""
        raise DataError(
            f"the scaffold split leaves {' and '.join(empty)} without a molecule ({len(scaffolds)} of {total} rows can "
            f"be used{why}); use more molecules, or a data set with more scaffolds"
        )
    largest = len(ordered[0]) if ordered else 0
    return ScaffoldSplit({name: sorted(found) for name, found in rows.items()}, len(groups), largest, warnings)


def _place(size: int, in_train: int, in_val: int, room: Mapping[str, Fraction]) -> str:
    if in_train + size <= room["train"]:
        return "train"
    return "val" if in_train + in_val + size <= room["train"] + room["val"] else "test"


def _oversized(name: str, size: int, split: str, share: float, total: int) -> str:
    what = f"scaffold '{name}'" if name else "the empty scaffold (molecules without rings)"
    return f"{what} has {size} of {total} molecules, more than the {100 * share:g} % meant for {split}, where it is"
