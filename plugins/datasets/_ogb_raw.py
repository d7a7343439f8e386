"""OGB's raw folder of a molecule set: ``raw/*.csv.gz`` and ``split/scaffold/*.csv.gz`` (Hu et al., NeurIPS 2020)."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness import DataError
from plugins.datasets._featurise import Wanted
from plugins.datasets._files import is_file, read_text
from plugins.datasets._molecules import Labels, Molecule, MoleculeSet
from plugins.datasets._ogb_features import ATOM_SIZES, BOND_SIZES
from plugins.datasets._rdkit import both_directions
from plugins.datasets._smiles_pool import featurise_smiles
from plugins.datasets._table import parse_labels, read_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RAW = ("num-node-list", "num-edge-list", "node-feat", "edge", "edge-feat", "graph-label")
SPLIT_FILES = {"train": "train", "val": "valid", "test": "test"}


@dataclass(frozen=True)
class OGBRaw:
    """The folder ``ogbg_mol*``.

    ``how`` says how to get the data, for messages. ``scaffolds`` and ``fragments`` ask for what the folder lacks:
    RDKit then reads the SMILES in ``mapping/mol.csv.gz``.
    """

    where: Path
    how: str
    scaffolds: bool = False
    fragments: bool = False

    def files(self) -> list[Path]:
        """The input files."""
        paths = [self._raw(name) for name in RAW]
        paths += [self.where / "split" / "scaffold" / f"{name}.csv.gz" for name in SPLIT_FILES.values()]
        paths += [self._mapping] if self._wants_smiles else []
        missing = [path for path in paths if not is_file(path)]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise DataError(f"missing data file: {missing[0]}{more}\n{self.how}")
        return paths

    def tasks(self) -> int:
        """Number of label columns."""
        return len(self._labels()[0])

    def read(self) -> MoleculeSet:
        """All molecules, with OGB's own split."""
        labels = self._labels()
        found = self._molecules(len(labels))
        molecules = dict(enumerate(self._with_structure(found) if self._wants_smiles else found))
        return MoleculeSet(molecules, labels, self._splits(len(labels)), facts={"source": "OGB raw folder"})

    @property
    def _mapping(self) -> Path:
        return self.where / "mapping" / "mol.csv.gz"

    @property
    def _wants_smiles(self) -> bool:
        return self.scaffolds or self.fragments

    def _with_structure(self, molecules: Sequence[Molecule]) -> list[Molecule]:
        """The same molecules with what RDKit finds in their SMILES; one that it cannot read is its own fragment."""
        smiles = read_table(self._mapping).column("smiles")
        if len(smiles) != len(molecules):
            raise DataError(f"{self._mapping}: {len(smiles)} rows for {len(molecules)} molecules")
        wanted = Wanted("ogb", "chiral" if self.scaffolds else "none", self.fragments)
        read = featurise_smiles(smiles, wanted).molecules
        found = []
        for row, known in enumerate(molecules):
            molecule = read.get(row)
            if molecule is None:
                found.append(replace(known, fragments=(known,) if self.fragments else ()))
            elif len(molecule.x) != len(known.x):
                raise DataError(f"{self._mapping}: the SMILES of molecule {row + 1} is not that of its atoms")
            else:
                found.append(replace(molecule, x=known.x, edge_index=known.edge_index, edge_attr=known.edge_attr))
        return found

    def _raw(self, name: str) -> Path:
        return self.where / "raw" / f"{name}.csv.gz"

    def _labels(self) -> Labels:
        self.files()
        path = self._raw("graph-label")
        # csv would drop an empty line, which here is a molecule with its one label missing
        rows = [line.split(",") for line in read_text(path).splitlines()]
        if len({len(row) for row in rows}) != 1:
            raise DataError(f"{path}: the rows have different numbers of labels; the file is damaged or not OGB's")
        return parse_labels(path, rows, [f"task {column + 1}" for column in range(len(rows[0]))])

    def _molecules(self, count: int) -> list[Molecule]:
        import numpy as np

        nodes = self._table("num-node-list", count, 1)[:, 0]
        edges = self._table("num-edge-list", count, 1)[:, 0]
        self._check("num-node-list", nodes >= 1)
        self._check("num-edge-list", edges >= 0)
        x = self._table("node-feat", int(nodes.sum()), len(ATOM_SIZES))
        ends = self._table("edge", int(edges.sum()), 2)
        codes = self._table("edge-feat", int(edges.sum()), len(BOND_SIZES))
        self._check("node-feat", (x >= 0) & (x < np.array(ATOM_SIZES)))
        self._check("edge", (ends >= 0) & (ends < np.repeat(nodes, edges)[:, None]))
        self._check("edge-feat", (codes >= 0) & (codes < np.array(BOND_SIZES)))
        node_ends, edge_ends = np.cumsum(nodes)[:-1], np.cumsum(edges)[:-1]
        pieces = zip(np.split(x, node_ends), np.split(ends, edge_ends), np.split(codes, edge_ends), strict=True)
        return [Molecule(atoms, *both_directions(bonds, kinds)) for atoms, bonds, kinds in pieces]

    def _table(self, name: str, rows: int, columns: int) -> NDArray[np.int64]:
        path = self._raw(name)
        table = _integers(path, columns)
        if len(table) != rows:
            raise DataError(f"{path}: {len(table)} rows where {rows} are due; a file is truncated or from another set")
        return table

    def _check(self, name: str, in_range: NDArray[np.bool_]) -> None:
        if not in_range.all():
            raise DataError(f"{self._raw(name)}: a number is out of range; the file is damaged or from another set")

    def _splits(self, count: int) -> Mapping[str, list[int]]:
        folder = self.where / "split" / "scaffold"
        splits = {name: _integers(folder / f"{file}.csv.gz", 1)[:, 0].tolist() for name, file in SPLIT_FILES.items()}
        if sorted(row for rows in splits.values() for row in rows) != list(range(count)):
            raise DataError(f"{folder}: the three index files do not hold each of the {count} molecules exactly once")
        return splits


def _integers(path: Path, columns: int) -> NDArray[np.int64]:
    """A comma-separated table of integers, (rows, columns)."""
    import numpy as np

    text = read_text(path)
    if not text.strip():
        return np.empty((0, columns), dtype=np.int64)
    try:
        table = np.loadtxt(io.StringIO(text), delimiter=",", dtype=np.int64, ndmin=2, comments=None)
    except ValueError as error:
        raise DataError(f"{path}: not a table of integers: {error}") from None
    if table.shape[1] != columns:
        raise DataError(f"{path}: {table.shape[1]} columns where OGB has {columns}")
    return table
