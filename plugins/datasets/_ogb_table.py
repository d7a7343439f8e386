"""An OGB set from MoleculeNet's table of SMILES and 0/1 labels, with OGB's features and OGB's scaffold split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness import DataError
from plugins.datasets._featurise import Wanted
from plugins.datasets._files import required
from plugins.datasets._molecules import Labels, MoleculeSet, scaffolds_of, tell_failures
from plugins.datasets._ogb_sets import NOT_LABELS, OGBSet
from plugins.datasets._scaffold import scaffold_split
from plugins.datasets._smiles_pool import featurise_smiles
from plugins.datasets._table import Table, parse_labels, read_table, shortened


@dataclass(frozen=True)
class OGBTable:
    """The CSV at ``where``; ``how`` says how to get it, for messages; ``fragments``: BRICS fragments as well."""

    where: Path
    known: OGBSet
    how: str
    fragments: bool = False

    def files(self) -> list[Path]:
        """Return the input file."""
        return [required(self.where, self.how)]

    def tasks(self) -> int:
        """Return the number of label columns. Reads all labels but no molecule, so that a bad file is found early."""
        return len(self._contents()[1][0])

    def read(self) -> MoleculeSet:
        """Return all molecules; rows that cannot be used are listed."""
        table, labels = self._contents()
        smiles = table.column(self._smiles_column(table))
        featurised = featurise_smiles(smiles, Wanted("ogb", "chiral", self.fragments))
        try:
            split = scaffold_split(scaffolds_of(featurised.molecules), len(smiles))
        except DataError as error:
            raise DataError(f"{self.where}: {error}") from None
        facts = {"source": "SMILES table", **split.facts}
        skipped = tell_failures(featurised.failures, table.lines)
        return MoleculeSet(featurised.molecules, labels, split.rows, skipped, facts, lines=table.lines)

    def _contents(self) -> tuple[Table, Labels]:
        self.files()
        table = read_table(self.where)
        names = self._label_columns(table)
        return table, parse_labels(self.where, table.columns(names), names)

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
                f"{self.where}: {len(names)} label columns where the set has {self.known.tasks}; the columns are: "
                f"{shortened(table.header)}"
            )
        return names
