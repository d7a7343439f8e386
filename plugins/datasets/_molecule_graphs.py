"""Sets of molecules as the harness takes them: graphs by split, groups, and facts that give away no test label."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

from harness import DataError, RawDataset, RawGraph
from plugins.datasets._molecules import Molecule, MoleculeSet, tell_failures


def raw_dataset(
    found: MoleculeSet, where: Path, *, scaffolds: bool = False, sealed: Collection[str] = ("test",)
) -> RawDataset:
    """The set as graphs. A molecule whose only label is missing is left out; a multi-task set keeps all.

    Args:
        found: the set.
        where: its file or folder, for messages.
        scaffolds: number the scaffolds as the group ``scaffold``, in the order in which they are met; -1 where RDKit
            could not tell.
        sealed: the test splits, of whose labels nothing is told.

    Raises:
        DataError: a split has no molecule.
    """
    found = _keep_labelled(found, where)
    groups = scaffold_groups(found.molecules) if scaffolds else {}
    splits = {name: [_graph(found, row, groups.get(row, {})) for row in rows] for name, rows in found.splits.items()}
    measured = {name: _measure(rows, found, name in sealed) for name, rows in found.splits.items()}
    facts = {"rows": len(found.labels), "skipped": len(found.skipped), **found.facts, "splits": measured}
    skipped = [text for _, text in sorted(found.skipped.items())]
    return RawDataset(splits=splits, skipped=skipped, facts=facts)


def _keep_labelled(found: MoleculeSet, where: Path) -> MoleculeSet:
    dropped = {row for row in found.molecules if len(found.labels[row]) == 1 and isnan(found.labels[row][0])}
    splits = {
        name: [row for row in rows if row in found.molecules and row not in dropped]
        for name, rows in found.splits.items()
    }
    empty = [name for name, rows in splits.items() if not rows]
    if empty:
        raise DataError(f"{where}: no labelled molecule is left in {' and '.join(empty)}")
    skipped = {**found.skipped, **tell_failures(dict.fromkeys(dropped, "no label"), found.lines)}
    return replace(found, splits=splits, skipped=skipped)


def scaffold_groups(molecules: Mapping[int, Molecule]) -> dict[int, dict[str, int]]:
    """Row -> the number of its scaffold, in the order in which they are met; -1 where RDKit could not tell."""
    numbers: dict[str | None, int] = {}
    for _, molecule in sorted(molecules.items()):
        if molecule.scaffold is not None:
            numbers.setdefault(molecule.scaffold, len(numbers))
    return {row: {"scaffold": numbers.get(molecule.scaffold, -1)} for row, molecule in molecules.items()}


def _graph(found: MoleculeSet, row: int, groups: dict[str, int]) -> RawGraph:
    import numpy as np

    labels = found.labels[row]
    y = int(labels[0]) if len(labels) == 1 else np.array(labels, dtype=np.float32)
    return graph_of(found.molecules[row], y, found.environments.get(row, -1), groups)


def graph_of(molecule: Molecule, y: Any, environment: int, groups: dict[str, int]) -> RawGraph:
    """A molecule with its label, environment (-1 for none) and groups as a graph, its fragments as parts."""
    return RawGraph(
        x=molecule.x,
        edge_index=molecule.edge_index,
        edge_attr=molecule.edge_attr,
        y=y,
        env=environment,
        groups=groups,
        parts=[RawGraph(part.x, part.edge_index, 0, part.edge_attr) for part in molecule.fragments],
    )


def _measure(rows: Sequence[int], found: MoleculeSet, sealed: bool) -> dict[str, Any]:
    """Size of a split and, unless it is a test split, how many labels each task has."""
    atoms = sum(len(found.molecules[row].x) for row in rows)
    sizes = {"graphs": len(rows), "mean_nodes": round(atoms / len(rows), 2)}
    if sealed:
        return sizes
    tasks = list(zip(*(found.labels[row] for row in rows), strict=True))
    labelled = [sum(not isnan(label) for label in labels) for labels in tasks]
    return sizes | {"positive": [sum(label == 1 for label in labels) for labels in tasks], "labelled": labelled}
