"""Molecules from a CSV table of SMILES and 0/1 labels, with OGB's features and OGB's scaffold split."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import DataError
from plugins.datasets._featurise import Wanted, featurise_smiles
from plugins.datasets._files import is_file, read_text
from plugins.datasets._molecules import Labels, MoleculeSet, parse_labels
from plugins.datasets._scaffold import scaffold_split


@dataclass(frozen=True)
class _Rows:
    """The table's cells: SMILES, (rows, T) labels, and the line of the file that each row ends on."""

    smiles: list[str]
    labels: Labels
    lines: list[int]
    names: tuple[str, ...]


@dataclass(frozen=True)
class SmilesTable:
    """The CSV at ``path``; no ``label_columns`` means every column but the SMILES.

    ``how`` says how to get the data, for messages; ``fragments`` asks for the molecules' BRICS fragments.
    """

    path: Path
    smiles_column: str
    label_columns: Sequence[str] | None
    how: str
    fragments: bool = False

    @property
    def where(self) -> Path:
        """The table."""
        return self.path

    def files(self) -> list[Path]:
        """The input file.

        Raises:
            DataError: it is missing.
        """
        if not is_file(self.path):
            raise DataError(f"missing data file: {self.path}\n{self.how}")
        return [self.path]

    def tasks(self) -> tuple[str, ...]:
        """Names of the label columns. Reads the table but no molecule, so that a bad file is found early."""
        return self._rows().names

    def read(self) -> MoleculeSet:
        """All molecules; rows that cannot be used are listed.

        Raises:
            DataError: the file is not such a table, or a split would be empty.
        """
        rows = self._rows()
        found = featurise_smiles(rows.smiles, Wanted("ogb", "chiral", self.fragments))
        scaffolds = {row: molecule.scaffold or "" for row, molecule in found.molecules.items()}
        skipped = [f"row {row + 1} (line {rows.lines[row]}): {why}" for row, why in found.failures.items()]
        try:
            split = scaffold_split(scaffolds, len(rows.smiles))
        except DataError as error:
            raise DataError(f"{self.path}: {error}") from None
        facts = {
            "source": "SMILES table",
            "scaffolds": split.groups,
            "largest_scaffold": split.largest,
            "warnings": split.warnings,
        }
        return MoleculeSet(found.molecules, rows.labels, split.rows, skipped, facts)

    def _rows(self) -> _Rows:
        self.files()
        numbered = self._parse()
        header = [name.strip() for name in numbered[0][1]]
        column, labels = self._column(header), self._label_columns(header)
        body = numbered[1:]
        for line, cells in body:
            if len(cells) != len(header):
                raise DataError(
                    f"{self.path}: line {line} has {len(cells)} fields, the header {len(header)}; the file is "
                    "truncated, damaged or not a comma-separated table"
                )
        where = [header.index(name) for name in labels]
        values = parse_labels(self.path, [[cells[index] for index in where] for _, cells in body], labels)
        return _Rows([cells[column].strip() for _, cells in body], values, [line for line, _ in body], labels)

    def _parse(self) -> list[tuple[int, list[str]]]:
        """(line number, cells) of each line that is not blank, the header first."""
        reader = csv.reader(io.StringIO(read_text(self.path), newline=""), strict=True)
        try:
            rows = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
        except csv.Error as error:
            raise DataError(f"{self.path}: line {reader.line_num}: not a comma-separated table: {error}") from None
        if len(rows) < 2:
            raise DataError(f"{self.path}: no molecule in it; expected a header line and one line per molecule")
        return rows

    def _column(self, header: list[str]) -> int:
        if header.count(self.smiles_column) != 1:
            found = "no" if self.smiles_column not in header else "more than one"
            raise DataError(
                f"{self.path}: {found} column '{self.smiles_column}' in the header; the columns are: "
                f"{_shortened(header)}. Name the SMILES column with 'smiles_column'"
            )
        return header.index(self.smiles_column)

    def _label_columns(self, header: list[str]) -> tuple[str, ...]:
        given = self.label_columns
        names = [name for name in header if name != self.smiles_column] if given is None else list(given)
        if not names:
            raise DataError(f"{self.path}: no label column; the columns are: {_shortened(header)}")
        for name in names:
            if header.count(name) != 1 or names.count(name) != 1 or name == self.smiles_column:
                raise DataError(
                    f"{self.path}: '{name}' is not exactly one label column; the columns are: {_shortened(header)}. "
                    "Name the label columns with 'label_columns: [...]'"
                )
        return tuple(names)


def _shortened(header: Sequence[str]) -> str:
    """The columns as text that fits on a screen, whatever the file is."""
    text = ", ".join(header)
    return text if len(text) <= 200 else f"{text[:200]} …"
