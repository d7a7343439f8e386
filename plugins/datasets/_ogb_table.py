"""An OGB set from MoleculeNet's table of SMILES and 0/1 labels, with OGB's features and OGB's scaffold split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness import DataError
from plugins.datasets._featurise import Wanted
from plugins.datasets._files import is_file
from plugins.datasets._labels import parse_labels
from plugins.datasets._molecules import MoleculeSet, scaffolds_of, tell_failures
from plugins.datasets._names import shortened
from plugins.datasets._ogb_sets import NOT_LABELS, OGBSet
from plugins.datasets._scaffold import scaffold_split
from plugins.datasets._smiles_pool import featurise_smiles
from plugins.datasets._table import Table, read_table


@dataclass(frozen=True)
class OGBTable:
    """The CSV at ``path``; ``how`` says how to get it, for messages; ``fragments``: BRICS fragments as well."""

    path: Path
    known: OGBSet
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
        """Names of the label columns. Reads all labels but no molecule, so that a bad file is found early.

        Raises:
            DataError: the file is not such a table.
        """
        self.files()
        table = read_table(self.path)
        names = self._label_columns(table)
        parse_labels(self.path, table.columns(names), names)
        return names

    def read(self) -> MoleculeSet:
        """All molecules; rows that cannot be used are listed.

        Raises:
            DataError: the file is not such a table, or a split would be empty.
        """
        self.files()
        table = read_table(self.path)
        names = self._label_columns(table)
        labels = parse_labels(self.path, table.columns(names), names)
        smiles = table.column(self._smiles_column(table))
        found = featurise_smiles(smiles, Wanted("ogb", "chiral", self.fragments))
        try:
            split = scaffold_split(scaffolds_of(found.molecules), len(smiles))
        except DataError as error:
            raise DataError(f"{self.path}: {error}") from None
        facts = {"source": "SMILES table", **split.facts}
        skipped = tell_failures(found.failures, table.lines)
        return MoleculeSet(found.molecules, labels, split.rows, skipped, facts, lines=table.lines)

    def _smiles_column(self, table: Table) -> str:
        names = self.known.smiles
        return next((name for name in names if name in table.header), names[0])

    def _label_columns(self, table: Table) -> tuple[str, ...]:
        """The set's one label where the table has it, else every column that may be one."""
        table.column(self._smiles_column(table))
        if self.known.label is not None and self.known.label in table.header:
            names: tuple[str, ...] = (self.known.label,)
        else:
            names = tuple(name for name in table.header if name not in NOT_LABELS and name not in self.known.smiles)
        if len(names) != self.known.tasks:
            raise DataError(
                f"{self.path}: {len(names)} label columns where the set has {self.known.tasks}; the columns are: "
                f"{shortened(table.header)}"
            )
        return names
