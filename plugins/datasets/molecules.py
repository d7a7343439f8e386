"""Molecules with OGB's features and scaffold split, from OGB's raw folder or a CSV table of SMILES."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isnan
from pathlib import Path

from harness import DataError, Dataset, Declaration, Features, RawDataset, RawGraph, Task, hookimpl, hparam
from plugins.datasets._files import is_file, is_folder
from plugins.datasets._molecules import Molecule, MoleculeSet, Source, keep_labelled
from plugins.datasets._ogb_features import ATOM_SIZES, BOND_SIZES
from plugins.datasets._ogb_raw import OGBRaw
from plugins.datasets._smiles_table import SmilesTable

OGB_ADDRESS = "http://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download"
MOLECULENET_ADDRESS = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets"


class Molecules(Dataset):
    """A molecule set with OGB's features and OGB's scaffold split, such as BACE and BBBP.

    Hu et al., "Open Graph Benchmark: Datasets for Machine Learning on Graphs", NeurIPS 2020; the sets are from
    MoleculeNet (Wu et al., Chemical Science 2018). Two sources give the same result: OGB's raw folder
    ``ogbg_mol<dataset>/`` (with its index files), or a CSV table ``moleculenet/<dataset>.csv`` of SMILES and labels, of
    which features and split are computed with RDKit; neither needs the ``ogb`` package. ``path`` names any other table.

    One label column is a binary task, several are a multi-task one with missing labels kept. A row that cannot be
    used (its SMILES cannot be read, or its only label is missing) is left out, counted and listed; such rows
    count as test molecules where the 80/10/10 shares are computed, as OGB has them there.
    """

    name = "molecules"
    family = "ogb"

    dataset: str = hparam("bace", help="name of the set: bace, bbbp, clintox, tox21 …")
    source: str = hparam("auto", choices=("auto", "ogb", "csv"), help="auto: OGB's folder if there is one, else a CSV")
    path: str | None = hparam(None, help="a CSV table elsewhere; relative to the data folder")
    smiles_column: str = hparam("smiles", active={"source": ["auto", "csv"]}, help="the CSV's column of SMILES")
    label_columns: list[str] | None = hparam(None, help="columns to predict; none: all but the SMILES")
    scaffolds: bool = hparam(False, help="give out each molecule's scaffold, for the environments `scaffold(k)`")
    fragments: str = hparam("none", choices=("none", "brics"), help="give out each molecule's fragments, for MoleOOD")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Reads the label columns.

        Raises:
            DataError: the data are missing, or their labels are not binary.
        """
        tasks = self._source(data_dir).tasks()
        several = len(tasks) > 1
        return Declaration(
            task=Task("multitask" if several else "binary", 2, len(tasks), metric="rocauc"),
            node_features=Features("categorical", ATOM_SIZES),
            edge_features=Features("categorical", BOND_SIZES),
            groups=("scaffold",) if self.scaffolds else (),
            validation="OOD",
            variant="OGB features, OGB scaffold split",
            notes=(
                "Official scaffold split (80/10/10): validation and test hold rarer scaffolds than train, and their "
                "label balance differs from train and from each other, so selection on validation is noisy.",
            ),
        )

    def files(self, data_dir: Path | None) -> list[Path]:
        """The input files.

        Raises:
            DataError: one is missing; the text names where to put it and where to get it.
        """
        return self._source(data_dir).files()

    def build(self, data_dir: Path | None) -> RawDataset:
        """Read and featurise the molecules.

        Raises:
            DataError: a file is truncated, foreign or inconsistent, or a split would be empty.
        """
        source = self._source(data_dir)
        found = keep_labelled(source.read(), source.where)
        groups = self._groups(found)
        splits = {
            name: [_graph(found.molecules[row], found.labels[row], groups.get(row, {})) for row in rows]
            for name, rows in found.splits.items()
        }
        measured = {name: _measure(name, rows, found) for name, rows in found.splits.items()}
        facts = {"rows": len(found.labels), "skipped": len(found.skipped), **found.facts, "splits": measured}
        return RawDataset(splits=splits, skipped=found.skipped, facts=facts)

    def _groups(self, found: MoleculeSet) -> dict[int, dict[str, int]]:
        """Row -> the number of its scaffold, in the order in which they are met; -1 where RDKit could not tell."""
        if not self.scaffolds:
            return {}
        numbers: dict[str | None, int] = {}
        for _, molecule in sorted(found.molecules.items()):
            if molecule.scaffold is not None:
                numbers.setdefault(molecule.scaffold, len(numbers))
        return {row: {"scaffold": numbers.get(molecule.scaffold, -1)} for row, molecule in found.molecules.items()}

    def _source(self, data_dir: Path | None) -> Source:
        if self.path is not None:
            return self._table(self._elsewhere(self.path, data_dir), self._how(data_dir))
        if not re.fullmatch(r"\w[\w.-]*", self.dataset):
            raise DataError(f"dataset 'molecules', hyperparameter 'dataset': {self.dataset!r} is not a plain name")
        if data_dir is None:
            raise DataError(f"no data folder is known: give --data-dir FOLDER or set BENCH_DATA\n{self._how(None)}")
        folder, table = data_dir / self._folder, data_dir / self._csv
        if self.source == "ogb" or (self.source == "auto" and is_folder(folder)):
            how = self._how(data_dir)
            return OGBRaw(folder, self.label_columns, how, self.scaffolds, self.fragments == "brics")
        if self.source == "auto" and not is_file(table):
            raise DataError(f"missing data: neither {folder} nor {table} is there\n{self._how(data_dir)}")
        return self._table(table, self._how(data_dir))

    def _elsewhere(self, path: str, data_dir: Path | None) -> Path:
        if self.source == "ogb":
            raise DataError("dataset 'molecules': 'path' names a CSV table and does not go with 'source: ogb'")
        chosen = Path(path).expanduser()
        if not chosen.is_absolute() and data_dir is None:
            raise DataError(
                f"'path: {path}' is relative and no data folder is known: give --data-dir FOLDER or set BENCH_DATA"
            )
        return chosen if data_dir is None else data_dir / chosen

    def _table(self, path: Path, how: str) -> SmilesTable:
        return SmilesTable(path, self.smiles_column, self.label_columns, how, self.fragments == "brics")

    @property
    def _folder(self) -> str:
        return f"ogbg_mol{self.dataset}"

    @property
    def _csv(self) -> Path:
        return Path("moleculenet") / f"{self.dataset}.csv"

    def _how(self, data_dir: Path | None) -> str:
        if self.path is not None:
            return "'path' names a CSV table with a header, a SMILES column and columns of 0/1 labels"
        root = Path("FOLDER") if data_dir is None else data_dir
        return (
            f"either unpack {OGB_ADDRESS}/{self.dataset}.zip there and rename its folder to {root / self._folder}\n"
            f"or put a CSV table (columns: smiles, then one per 0/1 label) at {root / self._csv}; MoleculeNet's own "
            f"are at {MOLECULENET_ADDRESS}/ and need 'smiles_column' and 'label_columns' (BACE: mol, [Class])"
        )


def _graph(molecule: Molecule, labels: Sequence[float], groups: dict[str, int]) -> RawGraph:
    import numpy as np

    return RawGraph(
        x=molecule.x,
        edge_index=molecule.edge_index,
        edge_attr=molecule.edge_attr,
        y=int(labels[0]) if len(labels) == 1 else np.array(labels, dtype=np.float32),
        groups=groups,
        parts=[RawGraph(part.x, part.edge_index, 0, part.edge_attr) for part in molecule.fragments],
    )


def _measure(name: str, rows: Sequence[int], found: MoleculeSet) -> dict[str, object]:
    """Size of a split and, unless it is the test split, how many labels each task has."""
    atoms = sum(len(found.molecules[row].x) for row in rows)
    sizes: dict[str, object] = {"graphs": len(rows), "mean_nodes": round(atoms / len(rows), 2)}
    if name == "test":
        return sizes
    tasks = list(zip(*(found.labels[row] for row in rows), strict=True))
    positive = [sum(label == 1 for label in labels) for labels in tasks]
    return sizes | {"positive": positive, "labelled": [sum(not isnan(label) for label in labels) for labels in tasks]}


@hookimpl
def bench_register(register):
    register(Molecules)
