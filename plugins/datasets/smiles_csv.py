"""Molecules of your own: a CSV table of SMILES and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from harness import DataError, Dataset, Declaration, RawDataset, Task, hookimpl, hparam
from plugins.datasets._featurise import FEATURISERS, Scaffolds, Wanted, featurise_smiles, featuriser_class
from plugins.datasets._files import given_path, is_file
from plugins.datasets._labels import parse_classes, parse_labels
from plugins.datasets._molecule_graphs import raw_dataset
from plugins.datasets._molecules import Labels, Molecule, MoleculeSet, scaffolds_of, tell_failures
from plugins.datasets._names import shortened
from plugins.datasets._scaffold import scaffold_split
from plugins.datasets._splits import LARGEST_SEED, SPLITS, Split, named_shares, random_split, size_split
from plugins.datasets._table import Table, read_table

DRAWN = ("scaffold", "size", "random")
SPLIT_NAMES = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
VARIANTS = {
    "column": "split by the table's column",
    "scaffold": "scaffold split",
    "size": "split by number of atoms",
    "random": "split by chance",
}
VALIDATION = {"column": "from the table", "scaffold": "OOD", "size": "OOD", "random": "in-distribution"}


@dataclass(frozen=True)
class _Contents:
    """What the table says, by row.

    ``rows``: those of each split, or None where it takes molecules to tell; ``domains``: values, '' for none.
    """

    table: Table
    smiles: list[str]
    labels: Labels
    classes: int
    rows: Split | None
    domains: list[str]

    def labelled(self, row: int) -> bool:
        """Whether the row stays: of several tasks, any may lack a label."""
        return len(self.labels[row]) > 1 or not isnan(self.labels[row][0])

    def environments(self, train: Sequence[int] | None) -> list[str]:
        """The domains of the labelled training rows in order; of all labelled rows where those are not known."""
        rows = range(len(self.smiles)) if train is None else train
        return sorted({self.domains[row] for row in rows if self.labelled(row)} - {""})

    def also_in_train(self, rows: Split) -> dict[str, int]:
        """Split name -> rows whose SMILES, as it is written, a training row has too."""
        train = {self.smiles[row] for row in rows["train"]}
        return {name: sum(self.smiles[row] in train for row in rows[name]) for name in SPLITS if name != "train"}


class SmilesCSV(Dataset):
    """Molecules of your own, from a CSV table with a header, a column of SMILES and one or more of labels.

    One label column is a binary task (0 and 1, scored by ROC-AUC) or one of several classes (0, 1, 2 …, scored by
    accuracy); several columns are a multi-task one of 0, 1 and empty cells. A row that cannot be used (its SMILES
    cannot be read, or its only label is missing) is left out, counted and listed.

    The split is the table's own (``split_column`` holds train, val or test), by Bemis-Murcko scaffold with OGB's rule
    (Hu et al., NeurIPS 2020: the most frequent scaffolds in train), by number of atoms (the smallest molecules in
    train), or by chance. Scaffolds and sizes stay together, so shares are met about; the split by chance is drawn for
    all rows, so that one that cannot be used moves no other.
    """

    name = "smiles-csv"
    family = "molecules"

    path: str | None = hparam(None, help="the table, plain or gzipped; relative to the data folder, or absolute")
    smiles_column: str = hparam("smiles", help="the column of SMILES")
    label_columns: list[str] | None = hparam(
        None, help="columns to predict; none: all but those of SMILES, split and domain"
    )
    split: str = hparam("scaffold", choices=("column", *DRAWN), help="the table's own, by scaffold, by size, by chance")
    split_column: str = hparam(
        "split", active={"split": ["column"]}, help="the column that holds train, val (valid, validation) or test"
    )
    shares: list[float] = hparam(
        [0.8, 0.1, 0.1], active={"split": list(DRAWN)}, help="shares of train, validation and test"
    )
    split_seed: int = hparam(
        0, low=0, high=LARGEST_SEED, active={"split": ["random"]}, help="seed of the split by chance"
    )
    domain_column: str | None = hparam(None, help="a column whose values, any text, are the training environments")
    featuriser: str = hparam("ogb", choices=FEATURISERS, help="OGB's 9/3 codes, or DrugOOD's 39/10 numbers")
    scaffolds: bool = hparam(False, help="give out each molecule's scaffold, for the environments `scaffold(k)`")
    fragments: str = hparam("none", choices=("none", "brics"), help="give out each molecule's fragments, for MoleOOD")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Reads the table, but no molecule: of a split by scaffold or size, environments are counted over all rows.

        Raises:
            DataError: it is missing or damaged, lacks a column, or its labels are not classes.
        """
        contents = self._contents(data_dir)
        tasks, rows = len(contents.labels[0]), contents.rows
        featuriser = featuriser_class(self.featuriser)
        if contents.classes > 2:
            task = Task("multiclass", contents.classes)
        else:
            task = Task("multitask" if tasks > 1 else "binary", 2, tasks, metric="rocauc")
        return Declaration(
            task=task,
            node_features=featuriser.node_features,
            edge_features=featuriser.edge_features,
            validation=VALIDATION[self.split],
            environments=len(contents.environments(None if rows is None else rows["train"])),
            groups=("scaffold",) if self.scaffolds else (),
            variant=f"{'OGB' if self.featuriser == 'ogb' else 'DrugOOD'} features, {VARIANTS[self.split]}",
            notes=() if rows is None else _slips(contents.also_in_train(rows), rows),
        )

    def files(self, data_dir: Path | None) -> list[Path]:
        """The table.

        Raises:
            DataError: it is missing.
        """
        path = self._where(data_dir)
        if not is_file(path):
            raise DataError(
                f"missing data file: {path}\n'path' names a CSV table with a header; a relative one is sought in the "
                "data folder (--data-dir)"
            )
        return [path]

    def build(self, data_dir: Path | None) -> RawDataset:
        """Featurise the molecules.

        Raises:
            DataError: as for :meth:`declare`, or a split would be empty.
        """
        contents, where = self._contents(data_dir), self._where(data_dir)
        scaffolds: Scaffolds = "chiral" if self.scaffolds or self.split == "scaffold" else "none"
        found = featurise_smiles(contents.smiles, Wanted(self.featuriser, scaffolds, self.fragments == "brics"))
        try:
            splits, facts = self._rows(contents, found.molecules)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        train = [row for row in splits["train"] if row in found.molecules]
        numbers = {name: number for number, name in enumerate(contents.environments(train))}
        if self.domain_column is not None and not numbers:
            raise DataError(f"{where}: {self._no_domain}")
        facts |= {"smiles_also_in_train": contents.also_in_train(splits)}
        if numbers:
            facts["environments"] = {str(number): name for name, number in numbers.items()}
        environments = {row: numbers.get(domain, -1) for row, domain in enumerate(contents.domains)}
        skipped = tell_failures(found.failures, contents.table.lines)
        found_set = MoleculeSet(
            found.molecules, contents.labels, splits, skipped, facts, environments, contents.table.lines
        )
        return raw_dataset(found_set, where, scaffolds=self.scaffolds)

    def _rows(self, contents: _Contents, molecules: Mapping[int, Molecule]) -> tuple[Split, dict[str, Any]]:
        """The split, and what is worth telling of it."""
        if contents.rows is not None:
            return contents.rows, {}
        total, shares = len(contents.smiles), named_shares(self.shares, self.name)
        if self.split == "scaffold":
            split = scaffold_split(scaffolds_of(molecules), total, shares)
            return dict(split.rows), split.facts
        usable = [row for row in molecules if contents.labelled(row)]
        chosen = size_split([len(molecules[row].x) for row in usable], shares)
        return {name: [usable[place] for place in places] for name, places in chosen.items()}, {}

    def _contents(self, data_dir: Path | None) -> _Contents:
        self._check()
        (path,) = self.files(data_dir)
        table = read_table(path)
        smiles = table.column(self.smiles_column, "smiles_column")
        rows = self._known_rows(table, len(smiles))
        named = self.domain_column is not None
        domains = table.column(str(self.domain_column), "domain_column") if named else [""] * len(smiles)
        labels, classes = self._labels(table)
        contents = _Contents(table, smiles, labels, classes, rows, domains)
        if named and not contents.environments(None if rows is None else rows["train"]):
            raise DataError(f"{path}: {self._no_domain}")
        return contents

    def _known_rows(self, table: Table, count: int) -> Split | None:
        """The split where no molecule need be known for it."""
        if self.split == "column":
            return rows_by_name(self._split_names(table))
        if self.split == "random":
            return random_split(count, named_shares(self.shares, self.name), self.split_seed)
        return None

    @property
    def _no_domain(self) -> str:
        name = f"column '{self.domain_column}' (domain_column)"
        return f"{name} is empty in every labelled training row, so there is no domain"

    def _labels(self, table: Table) -> tuple[Labels, int]:
        names, told = self._label_columns(table), "label_columns"
        if len(names) == 1:
            return parse_classes(table.path, table.column(names[0], told), names[0])
        return parse_labels(table.path, table.columns(names, told), names), 2

    def _label_columns(self, table: Table) -> list[str]:
        taken = {self.smiles_column, self.domain_column} | ({self.split_column} if self.split == "column" else set())
        if self.label_columns is None:
            names = [name for name in table.header if name not in taken]
        else:
            names = list(self.label_columns)
        twice = next((name for name in names if name in taken or names.count(name) > 1), None)
        if not names or twice is not None:
            what = "no label column" if not names else f"'{twice}' is not exactly one label column"
            raise DataError(
                f"{table.path}: {what}; the columns are: {shortened(table.header)}. 'label_columns: [...]' names the "
                "columns to predict"
            )
        return names

    def _split_names(self, table: Table) -> list[str]:
        found = []
        for row, cell in enumerate(table.column(self.split_column, "split_column")):
            name = SPLIT_NAMES.get(cell.lower())
            if name is None:
                raise DataError(
                    f"{table.path}: column '{self.split_column}', row {row + 1} (line {table.lines[row]}): found "
                    f"{cell[:40]!r}, but expected one of {', '.join(SPLIT_NAMES)}"
                )
            found.append(name)
        empty = [name for name in SPLITS if name not in found]
        if empty:
            raise DataError(f"{table.path}: column '{self.split_column}' has no row for {' and '.join(empty)}")
        return found

    def _check(self) -> None:
        """Refuse settings that have no meaning together."""
        if self.split != "random" and self.split_seed != 0:
            raise DataError(f"dataset 'smiles-csv': 'split_seed' has no meaning with 'split: {self.split}'")
        if self.split != "column":
            named_shares(self.shares, self.name)

    def _where(self, data_dir: Path | None) -> Path:
        if self.path is None:
            raise DataError("dataset 'smiles-csv': 'path' is not given; it names a CSV table of SMILES and labels")
        return given_path(self.path, data_dir)


def _slips(repeated: Mapping[str, int], rows: Split) -> tuple[str, ...]:
    """What a reader should know of rows that are on both sides of the split."""
    told = [f"{count} of {len(rows[name])} {name} rows" for name, count in repeated.items() if count]
    return (f"{' and '.join(told)} have a SMILES that is also in train.",) if told else ()


def rows_by_name(names: Sequence[str]) -> Split:
    """Split name -> rows, from the split's name of each row."""
    return {name: [row for row, given in enumerate(names) if given == name] for name in SPLITS}


@hookimpl
def bench_register(register):
    register(SmilesCSV)
