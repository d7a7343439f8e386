"""Comma-separated tables as people have them: quoted cells, Windows line ends, a byte order mark, gzip."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import DataError, did_you_mean
from plugins.datasets._files import read_text
from plugins.datasets._names import shortened


@dataclass(frozen=True)
class Table:
    """Cells without the spaces around them, by row; ``lines``: the line of the file that each row ends on."""

    path: Path
    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    lines: Sequence[int]

    def column(self, name: str, option: str = "") -> list[str]:
        """The cells of one column.

        Raises:
            DataError: it is not there exactly once; the text names the columns, and the
                hyperparameter ``option`` that named it.
        """
        place = self._place(name, option)
        return [row[place] for row in self.rows]

    def columns(self, names: Sequence[str], option: str = "") -> list[list[str]]:
        """The cells of several columns, by row.

        Raises:
            DataError: as for :meth:`column`.
        """
        places = [self._place(name, option) for name in names]
        return [[row[place] for place in places] for row in self.rows]

    def _place(self, name: str, option: str = "") -> int:
        if self.header.count(name) == 1:
            return self.header.index(name)
        twice = name in self.header
        found = "more than one" if twice else "no"
        hint = "" if twice else self._other_separator() or did_you_mean(name, self.header)
        raise DataError(
            f"{self.path}: {found} column '{name}' in the header{hint}; the columns are: {shortened(self.header)}"
            + (f". '{option}' names it" if option else "")
        )

    def _other_separator(self) -> str:
        """A hint where the header's only column looks like several."""
        marks = {";": "semicolons", "\t": "tabs"}
        told = next((word for mark, word in marks.items() if len(self.header) == 1 and mark in self.header[0]), None)
        return f" (it seems to be separated by {told}; commas are expected)" if told else ""


def read_table(path: Path) -> Table:
    """The table at ``path``; blank lines are left out.

    Raises:
        DataError: there is none, it is damaged, or it has no row.
    """
    (_, header), *body = _parse(path)
    for line, cells in body:
        if len(cells) != len(header):
            raise DataError(
                f"{path}: line {line} has {len(cells)} fields, the header {len(header)}; the file is truncated, "
                "damaged or not a comma-separated table"
            )
    return Table(path, tuple(header), [cells for _, cells in body], [line for line, _ in body])


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
