"""Molecules that are there several times, found by their canonical SMILES: how many, their labels, their splits.

Stereoisomers, isotopes, salts and tautomers are different molecules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isnan
from typing import Any

from plugins.datasets._molecules import Labels, Molecule
from plugins.datasets._splits import Split


def copies(molecules: Mapping[int, Molecule]) -> list[list[int]]:
    """The rows of each molecule that has several, ascending."""
    found: dict[str, list[int]] = {}
    for row in sorted(molecules):
        if (smiles := molecules[row].smiles) is not None:
            found.setdefault(smiles, []).append(row)
    return [rows for rows in found.values() if len(rows) > 1]


def rows_to_drop(molecules: Mapping[int, Molecule], labels: Labels) -> dict[int, str]:
    """Row -> why it is left out, so that each molecule is there once: its first row stays.

    Where rows of a molecule contradict each other, none stays, as none is known to be right.
    """
    found: dict[int, str] = {}
    for first, *others in copies(molecules):
        contradicted = _contradicted([first, *others], labels)
        label = ", whose rows have different labels" if contradicted else ""
        found |= dict.fromkeys(others, f"the same molecule as row {first + 1}{label}")
        if contradicted:
            found[first] = f"the same molecule as row {others[0] + 1}{label}"
    return found


def together(split: Split, groups: Iterable[Sequence[int]]) -> Split:
    """The split with each group's rows where the group's first row is."""
    places = {row: name for name, rows in split.items() for row in rows}
    for first, *others in groups:
        places |= dict.fromkeys(others, places[first])
    return {name: sorted(row for row, place in places.items() if place == name) for name in split}


def tell_molecules(
    molecules: Mapping[int, Molecule], labels: Labels, splits: Mapping[str, Sequence[int]], sealed: Collection[str]
) -> tuple[dict[str, Any], list[str]]:
    """Facts and notes about map numbers and repeated molecules, of those that are in a split."""
    places = {row: name for name, rows in splits.items() for row in rows}
    used = {row: molecules[row] for row in places}
    mapped = sum(molecule.mapped for molecule in used.values())
    facts: dict[str, Any] = {"atom_mapped": mapped} if mapped else {}
    notes = [f"Atom map numbers of {_counted(mapped, 'molecule')} are left out."] if mapped else []
    if all(molecule.smiles is None for molecule in used.values()):
        return facts, notes
    repeated = copies(used)
    contradicted = sum(_contradicted([row for row in rows if places[row] not in sealed], labels) for rows in repeated)
    train = {molecules[row].smiles for row in splits["train"]} - {None}
    also = {name: sum(molecules[row].smiles in train for row in splits[name]) for name in splits if name != "train"}
    facts |= {
        "repeated_molecules": len(repeated),
        "molecules_with_different_labels": contradicted,
        "molecules_also_in_train": also,
    }
    if repeated:
        rows = _counted(sum(map(len, repeated)), "row")
        notes.append(
            f"{_counted(len(repeated), 'molecule')} of {rows} {'is' if len(repeated) == 1 else 'are'} there more than "
            f"once, of which {contradicted} with different labels outside the test splits."
        )
    if any(also.values()):
        told = [f"{count} of {len(splits[name])} {name}" for name, count in also.items() if count]
        notes.append(f"{' and '.join(told)} molecules are also in train.")
    return facts, notes


def _contradicted(rows: Sequence[int], labels: Labels) -> bool:
    """Return True if a task has different labels in rows of one molecule."""
    tasks = zip(*(labels[row] for row in rows), strict=True)
    return any(len({label for label in task if not isnan(label)}) > 1 for task in tasks)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
