"""Labels of text files: 0/1 with gaps, or the numbers of classes. Anything else is refused, with its place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from harness import DataError
from plugins.datasets._molecules import Labels
from plugins.datasets._table import is_missing


def parse_labels(path: Path, rows: Sequence[Sequence[str]], names: Sequence[str]) -> Labels:
    """Text cells (rows, T) as 0, 1 or NaN.

    Raises:
        DataError: a cell is something else, as in a regression column; the text names column and row.
    """
    return _parse(path, rows, names, lambda value: value in (0.0, 1.0), "0, 1 or empty")


def parse_classes(path: Path, cells: Sequence[str], name: str) -> tuple[Labels, int]:
    """Text cells of one column as class numbers or NaN (rows, 1), and the number of classes, at least two.

    Raises:
        DataError: a cell is no whole number from 0 on, or the numbers have gaps, as those of a count would.
    """
    told = "a whole number from 0 on, or empty"
    labels = _parse(path, [[cell] for cell in cells], [name], lambda value: value >= 0 and value.is_integer(), told)
    found = sorted({label for (label,) in labels if not math.isnan(label)})
    count = max(len(found), 2)
    if found and found[-1] >= count:
        raise DataError(
            f"{path}: column '{name}': {len(found)} different labels, of which the largest is {found[-1]:g}; classes "
            "are numbered 0, 1 … without gaps (regression is not supported)"
        )
    return labels, count


def refuse_unlabelled(path: Path, labels: Labels, names: Sequence[str]) -> None:
    """Refuse a column without any label.

    Raises:
        DataError: there is one; the text names it.
    """
    for place, name in enumerate(names):
        if all(math.isnan(row[place]) for row in labels):
            raise DataError(
                f"{path}: column '{name}' has no label in any row; 'label_columns: [...]' of 'smiles-csv' names the "
                "label columns"
            )


def _parse(
    path: Path, rows: Sequence[Sequence[str]], names: Sequence[str], fits: Callable[[float], bool], told: str
) -> Labels:
    known: dict[str, float] = {}
    for number, row in enumerate(rows, start=1):
        for name, cell in zip(names, row, strict=True):
            if cell not in known:
                value = _number(cell)
                if value is None or not (math.isnan(value) or fits(value)):
                    raise DataError(
                        f"{path}: column '{name}', row {number}: found {cell[:40]!r}, but a label is {told} "
                        f"({_advice(value)}). "
                        "'label_columns: [...]' of 'smiles-csv' names the label columns"
                    )
                known[cell] = value
    return [[known[cell] for cell in row] for row in rows]


def _advice(value: float | None) -> str:
    if value is None:
        return "classes with names have to be numbered"
    if value == -1:
        return "where labels are -1 and 1, write 0 and 1; where -1 says that none was measured, write nothing"
    return "regression is not supported"


def _number(cell: str) -> float | None:
    if is_missing(cell):
        return math.nan
    text = cell.strip()
    if not text.isascii() or "_" in text:  # Python takes 0_1 for 1
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
