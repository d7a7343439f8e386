"""Sets of molecules as the harness takes them: graphs by split, groups, and facts that give away no test label."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path

from harness import DataError, RawDataset, RawGraph
from plugins.datasets._molecules import Labels, Molecule, MoleculeSet, tell_failures
from plugins.datasets._repeats import tell_molecules


def raw_dataset(
    found: MoleculeSet, where: Path, *, scaffolds: bool = False, sealed: Collection[str] = ("test",)
) -> RawDataset:
    """The set as graphs, without molecules whose only label is missing; nothing is told of labels of ``sealed``."""
    found = _keep_labelled(found, where)
    groups = _scaffold_groups(found.molecules) if scaffolds else {}
    splits = {name: [_graph(found, row, groups.get(row, {})) for row in rows] for name, rows in found.splits.items()}
    balance = {name: _balance(rows, found.labels) for name, rows in found.splits.items() if name not in sealed}
    told, notes = tell_molecules(found.molecules, found.labels, found.splits, sealed)
    facts = {"rows": len(found.labels), "skipped": len(found.skipped), **found.facts, **told, "labels": balance}
    skipped = [text for _, text in sorted(found.skipped.items())]
    return RawDataset(splits=splits, skipped=skipped, facts=facts, notes=notes)


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


def _scaffold_groups(molecules: Mapping[int, Molecule]) -> dict[int, dict[str, int]]:
    scaffolds = {row: molecule.scaffold for row, molecule in molecules.items()}
    names = sorted({scaffold for scaffold in scaffolds.values() if scaffold is not None})
    numbers = {name: number for number, name in enumerate(names)}
    return {row: {"scaffold": -1 if name is None else numbers[name]} for row, name in scaffolds.items()}


def _graph(found: MoleculeSet, row: int, groups: dict[str, int]) -> RawGraph:
    """A molecule with its label, environment (-1 for none) and groups as a graph, its fragments as parts."""
    import numpy as np

    molecule, labels = found.molecules[row], found.labels[row]
    return RawGraph(
        x=molecule.x,
        edge_index=molecule.edge_index,
        edge_attr=molecule.edge_attr,
        y=int(labels[0]) if len(labels) == 1 else np.array(labels, dtype=np.float32),
        env=found.environments.get(row, -1),
        groups=groups,
        parts=[RawGraph(part.x, part.edge_index, 0, part.edge_attr) for part in molecule.fragments],
    )


def _balance(rows: Sequence[int], labels: Labels) -> dict[str, list[int]]:
    """How many labels each task has, and how many of these are positive."""
    tasks = list(zip(*(labels[row] for row in rows), strict=True))
    labelled = [sum(not isnan(label) for label in task) for task in tasks]
    return {"positive": [sum(label == 1 for label in task) for task in tasks], "labelled": labelled}
