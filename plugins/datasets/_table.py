"""Comma-separated tables as people have them: quoted cells, Windows line ends, a byte order mark, gzip, no values.

Labels are 0/1 with gaps, or the numbers of classes; anything else is refused, with its place.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import DataError, did_you_mean
from plugins.datasets._files import read_text
from plugins.datasets._molecules import Labels

MISSING = frozenset({"", "nan", "na", "n/a", "#n/a", "<na>", "none", "null"})


def shortened(names: Iterable[str]) -> str:
    """Names as text that fits on a screen, however many there are."""
    text = ", ".join(names)
    return text if len(text) <= 200 else f"{text[:200]} …"


def is_missing(cell: str) -> bool:
    """Return True if a cell of any column says that there is no value, in whatever case."""
    return cell.strip().lower() in MISSING


@dataclass(frozen=True)
class Table:
    """Cells without the spaces around them, by row; ``lines``: the line of the file that each row ends on."""

    path: Path
    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    lines: Sequence[int]

    def column(self, name: str, option: str = "") -> list[str]:
        """The cells of one column."""
        place = self._place(name, option)
        return [row[place] for row in self.rows]

    def columns(self, names: Sequence[str], option: str = "") -> list[list[str]]:
        """The cells of several columns, by row."""
        places = [self._place(name, option) for name in names]
        return [[row[place] for place in places] for row in self.rows]

    def _place(self, name: str, option: str = "") -> int:
        if self.header.count(name) == 1:
            return self.header.index(name)
        twice = name in self.header
        found = "more than one" if twice else "no"
        hint = "" if twice else did_you_mean(name, self.header)
        raise DataError(
            f"{self.path}: {found} column '{name}' in the header{hint}; the columns are: {shortened(self.header)}"
            + (f". '{option}' names it" if option else "")
        )


def read_table(path: Path) -> Table:
    """The table at ``path``; blank lines are left out, and columns with neither a name nor a value."""
    (_, header), *body = _parse(path)
    least = max((place for place, name in enumerate(header, start=1) if name), default=0)
    for line, cells in body:
        if not least <= len(cells) <= len(header):
            raise DataError(
                f"{path}: line {line} has {len(cells)} fields, the header {len(header)}; the file is truncated, "
                "damaged or not a comma-separated table"
            )
    rows = [cells + [""] * (len(header) - len(cells)) for _, cells in body]
    kept = [place for place, name in enumerate(header) if name or not all(is_missing(cells[place]) for cells in rows)]
    if len(kept) < len(header):
        header, rows = [header[place] for place in kept], [[cells[place] for place in kept] for cells in rows]
    return Table(path, tuple(header), rows, [line for line, _ in body])


def _parse(path: Path) -> list[tuple[int, list[str]]]:
    """(line number, cells) of each line that is not blank, the header first."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    rows = []
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                rows.append((reader.line_num, stripped))
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: not a comma-separated table: {error}") from None
    if len(rows) < 2:
        raise DataError(f"{path}: no molecule in it; expected a header line and one line per molecule")
    return rows


def parse_labels(path: Path, rows: Sequence[Sequence[str]], names: Sequence[str]) -> Labels:
    """Text cells (rows, T) as 0, 1 or NaN."""
    return _parse_labels(path, rows, names, lambda value: value in (0.0, 1.0), "0, 1 or empty")


def parse_classes(path: Path, cells: Sequence[str], name: str) -> tuple[Labels, int]:
    """Text cells of one column as class numbers or NaN (rows, 1), and the number of classes, at least two."""
    told = "a whole number from 0 on, or empty"
    labels = _parse_labels(
        path, [[cell] for cell in cells], [name], lambda value: value >= 0 and value.is_integer(), told
    )
    found = sorted({label for (label,) in labels if not math.isnan(label)})
    count = max(len(found), 2)
    if found and found[-1] >= count:
        raise DataError(
            f"{path}: column '{name}': {len(found)} different labels, of which the largest is {found[-1]:g}; classes "
            "are numbered 0, 1 … without gaps (regression is not supported)"
        )
    return labels, count


def refuse_unlabelled(path: Path, labels: Labels, names: Sequence[str]) -> None:
    """Refuse a column without any label."""
    for place, name in enumerate(names):
        if all(math.isnan(row[place]) for row in labels):
            raise DataError(
                f"{path}: column '{name}' has no label in any row; 'label_columns: [...]' of 'smiles-csv' names the "
                "label columns"
            )


def _parse_labels(
    path: Path, rows: Sequence[Sequence[str]], names: Sequence[str], fits: Callable[[float], bool], told: str
) -> Labels:
    known = {cell: _number(cell) for row in rows for cell in row}
    wrong = {cell for cell, value in known.items() if not (math.isnan(value) or fits(value))}
    for number, row in enumerate(rows if wrong else (), start=1):
        for name, cell in zip(names, row, strict=True):
            if cell in wrong:
                raise DataError(
                    f"{path}: column '{name}', row {number}: found {cell[:40]!r}, but a label is {told} (regression is "
                    "not supported, and classes with names have to be numbered). 'label_columns: [...]' of "
                    "'smiles-csv' names the label columns"
                )
    return [[known[cell] for cell in row] for row in rows]


def _number(cell: str) -> float:
    """The number in a cell, NaN where there is none; infinite where the cell holds anything else."""
    if is_missing(cell):
        return math.nan
    found = re.fullmatch(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*", cell, re.ASCII | re.IGNORECASE)
    return float(cell) if found else math.inf
