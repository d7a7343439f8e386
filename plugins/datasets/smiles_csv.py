"""Molecules of your own: a CSV table of SMILES and labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from harness import DataError, Dataset, Declaration, RawDataset, Register, Task, hookimpl, hparam
from plugins.datasets._featurise import FEATURISERS, Scaffolds, Wanted, featuriser_class
from plugins.datasets._files import given_path, required
from plugins.datasets._molecule_graphs import raw_dataset
from plugins.datasets._molecules import Labels, Molecule, MoleculeSet, scaffolds_of, tell_failures
from plugins.datasets._repeats import copies, rows_to_drop, together
from plugins.datasets._scaffold import scaffold_split
from plugins.datasets._smiles_pool import featurise_smiles
from plugins.datasets._splits import LARGEST_SEED, SPLITS, Split, named_shares, random_split, refuse_seed, size_split
from plugins.datasets._table import (
    Table,
    is_missing,
    parse_classes,
    parse_labels,
    read_table,
    refuse_unlabelled,
    shortened,
)

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
    """The contents of the table, by row.

    ``rows``: those of each split, or None where it takes molecules to tell; ``train``: those of training, or None
    where it takes molecules to tell which of them stay there; ``domains``: values, '' for none.
    """

    table: Table
    smiles: list[str]
    labels: Labels
    classes: int
    rows: Split | None
    train: Sequence[int] | None
    domains: list[str]

    def labelled(self, row: int) -> bool:
        """Return True if the row stays: of several tasks, any may lack a label."""
        return len(self.labels[row]) > 1 or not isnan(self.labels[row][0])

    def environments(self, train: Sequence[int] | None) -> list[str]:
        """The domains of the labelled training rows in order; of all labelled rows where those are not known."""
        rows = range(len(self.smiles)) if train is None else train
        return sorted({self.domains[row] for row in rows if self.labelled(row)} - {""})


class SmilesCSV(Dataset):
    """Molecules of your own, from a CSV table with a header, a column of SMILES and one or more of labels.

    One label column is a binary task (0 and 1, scored by ROC-AUC) or one of several classes (0, 1, 2 …, scored by
    accuracy); several columns are a multi-task one of 0, 1 and empty cells. The split is the table's own, by
    Bemis-Murcko scaffold with OGB's rule (Hu et al., NeurIPS 2020), by number of atoms (the smallest in train), or by
    chance. Scaffolds and sizes stay together. A row that cannot be used is left out, counted and listed, and moves no
    other; rows of one molecule are found by its canonical SMILES.
    """

    name = "smiles-csv"
    family = "molecules"
    names_files = ("path",)

    path: str | None = hparam(
        None, help="the table, plain or gzipped; beside the suite, in the data folder, or absolute"
    )
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
    duplicates: str = hparam(
        "keep", choices=("keep", "drop", "group"), help="rows of one molecule: all, one, or all in one split"
    )
    domain_column: str | None = hparam(None, help="a column whose values, any text, are the training environments")
    featuriser: str = hparam("ogb", choices=FEATURISERS, help="OGB's 9/3 codes, or DrugOOD's 39/10 numbers")
    scaffolds: bool = hparam(False, help="give out each molecule's scaffold, for the environments `scaffold(k)`")
    fragments: str = hparam("none", choices=("none", "brics"), help="give out each molecule's fragments, for MoleOOD")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Reads the table, but no molecule: where these tell the split, environments are those of all rows."""
        contents = self._contents(data_dir)
        tasks = len(contents.labels[0])
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
            environments=len(contents.environments(contents.train)),
            groups=("scaffold",) if self.scaffolds else (),
            variant=f"{'OGB' if self.featuriser == 'ogb' else 'DrugOOD'} features, {VARIANTS[self.split]}",
        )

    def files(self, data_dir: Path | None) -> list[Path]:
        """The table."""
        how = (
            "'path' names a CSV table with a header; a relative one is sought beside the suite and in the data folder "
            "(--data-dir)"
        )
        return [required(self._where(data_dir), how)]

    def build(self, data_dir: Path | None) -> RawDataset:
        """Featurise the molecules."""
        contents, where = self._contents(data_dir), self._where(data_dir)
        scaffolds: Scaffolds = "chiral" if self.scaffolds or self.split == "scaffold" else "none"
        found = featurise_smiles(contents.smiles, Wanted(self.featuriser, scaffolds, self.fragments == "brics"))
        labelled = {row: molecule for row, molecule in found.molecules.items() if contents.labelled(row)}
        dropped = rows_to_drop(labelled, contents.labels) if self.duplicates == "drop" else {}
        molecules = {row: molecule for row, molecule in found.molecules.items() if row not in dropped}
        try:
            splits, facts = self._rows(contents, molecules, len(contents.smiles) - len(dropped))
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        train = [row for row in splits["train"] if row in molecules]
        numbers = {name: number for number, name in enumerate(contents.environments(train))}
        if self.domain_column is not None and not numbers:
            raise DataError(f"{where}: {self._no_domain}")
        if numbers:
            facts["environments"] = {str(number): name for name, number in numbers.items()}
        environments = {row: numbers.get(domain, -1) for row, domain in enumerate(contents.domains)}
        skipped = tell_failures({**found.failures, **dropped}, contents.table.lines)
        found_set = MoleculeSet(molecules, contents.labels, splits, skipped, facts, environments, contents.table.lines)
        return raw_dataset(found_set, where, scaffolds=self.scaffolds)

    def _rows(self, contents: _Contents, molecules: Mapping[int, Molecule], total: int) -> tuple[Split, dict[str, Any]]:
        """The split, and what is worth telling of it; ``total``: the rows, without those that were dropped."""
        if contents.rows is not None:
            return (together(contents.rows, copies(molecules)) if self.duplicates == "group" else contents.rows), {}
        shares = named_shares(self.shares, self.name)
        if self.split == "scaffold":
            split = scaffold_split(scaffolds_of(molecules), total, shares, ties="smiles")
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
        domains = [""] * len(smiles)
        if self.domain_column is not None:
            domains = [_domain(cell) for cell in table.column(self.domain_column, "domain_column")]
        labels, classes = self._labels(table)
        train = None if rows is None or self.duplicates != "keep" else rows["train"]
        contents = _Contents(table, smiles, labels, classes, rows, train, domains)
        if self.domain_column is not None and not contents.environments(train):
            raise DataError(f"{path}: {self._no_domain}")
        return contents

    def _known_rows(self, table: Table, count: int) -> Split | None:
        """The split where no molecule need be known for it, before duplicates are dropped or put together."""
        if self.split == "column":
            names = self._split_names(table)
            return {split: [row for row, name in enumerate(names) if name == split] for split in SPLITS}
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
            labels, classes = parse_classes(table.path, table.column(names[0], told), names[0])
        else:
            labels, classes = parse_labels(table.path, table.columns(names, told), names), 2
        refuse_unlabelled(table.path, labels, names)
        return labels, classes

    def _label_columns(self, table: Table) -> list[str]:
        taken = {self.smiles_column, self.domain_column} | ({self.split_column} if self.split == "column" else set())
        if self.label_columns is None:
            names = [name for name in table.header if name not in taken]
        else:
            names = list(self.label_columns)
        if not names or "" in names or taken & set(names) or len(set(names)) < len(names):
            raise DataError(
                f"{table.path}: no label column, or one without a name, there twice or of another use: "
                f"{shortened(map(repr, names)) or 'none'}; "
                f"the columns are: {shortened(table.header)}. 'label_columns: [...]' names the columns to predict"
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
        if self.split == "column" and self.duplicates == "group":
            raise DataError(
                "dataset 'smiles-csv': 'duplicates: group' has no meaning with 'split: column', as the table says in "
                "which split each row is"
            )
        refuse_seed(self, self.split != "random")
        if self.split != "column":
            named_shares(self.shares, self.name)

    def _where(self, data_dir: Path | None) -> Path:
        if self.path is None:
            raise DataError("dataset 'smiles-csv': 'path' is not given; it names a CSV table of SMILES and labels")
        return given_path(self.path, data_dir)


def _domain(cell: str) -> str:
    """The domain that a cell names, '' for none: 1.0, as tables with gaps have it, is 1."""
    whole = re.fullmatch(r"(-?\d+)\.0*", cell)
    return "" if is_missing(cell) else whole[1] if whole else cell


@hookimpl
def bench_register(register: Register) -> None:
    register(SmilesCSV)
