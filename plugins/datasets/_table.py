"""Comma-separated tables as people have them: quoted cells, Windows line ends, a byte order mark, gzip, no values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import DataError, did_you_mean
from plugins.datasets._files import read_text

MISSING = frozenset({"", "nan", "na", "n/a", "#n/a", "<na>", "none", "null"})
SEPARATORS = {";": "semicolons", "\t": "tabs"}


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
        hint = "" if twice else did_you_mean(name, self.header)
        raise DataError(
            f"{self.path}: {found} column '{name}' in the header{hint}; the columns are: {shortened(self.header)}"
            + (f". '{option}' names it" if option else "")
        )


def read_table(path: Path) -> Table:
    """The table at ``path``; blank lines are left out, and columns with neither a name nor a value.

    Raises:
        DataError: there is none, it is damaged, its separator is another than a comma, or it has no row.
    """
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
    text = read_text(path)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        _refuse_other_separator(path, text)
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                rows.append((reader.line_num, stripped))
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: not a comma-separated table: {error}") from None
    if len(rows) < 2:
        raise DataError(f"{path}: no molecule in it; expected a header line and one line per molecule")
    return rows


def _refuse_other_separator(path: Path, text: str) -> None:
    """Refuse a header that is one column with commas and several with another separator."""
    header = next((line for line in text.splitlines() if line.strip()), "")
    found = next((word for mark, word in SEPARATORS.items() if _fields(header, mark) > 1), None)
    if found is not None and _fields(header, ",") == 1:
        raise DataError(f"{path}: the header is separated by {found}; the separator of a table is a comma")


def _fields(line: str, separator: str) -> int:
    return len(next(csv.reader([line], delimiter=separator), []))
