"""What tests of molecule sets share: small tables with many scaffolds, and OGB raw folders."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.data import RawDataset, RawGraph


def rings(count: int) -> list[str]:
    """Cycloalkanes of 3, 4, 5 … atoms: each its own scaffold, and ``n`` atoms each."""
    return [f"C1{'C' * (size - 1)}1" for size in range(3, count + 3)]


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]], end: str = "\n") -> Path:
    """A table at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator=end)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def ring_table(path: Path, count: int = 20, end: str = "\n") -> Path:
    """``count`` rings; a ring's label says whether its number of atoms is odd."""
    return write_csv(path, ["smiles", "odd"], [(smiles, (3 + i) % 2) for i, smiles in enumerate(rings(count))], end)


def write_gz(path: Path, text: str) -> None:
    """A gzipped text file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def raw_folder(folder: Path, changes: Mapping[str, str] | None = None) -> Path:
    """An OGB raw folder of four molecules (C-C, one lone atom, C-C-C, C-C); ``changes`` replaces files' texts."""
    atom, bond = "5,0,4,5,3,0,2,0,0\n", "0,0,0\n"
    files = {
        "raw/num-node-list": "2\n1\n3\n2\n",
        "raw/num-edge-list": "1\n0\n2\n1\n",
        "raw/node-feat": atom * 8,
        "raw/edge": "0,1\n0,1\n1,2\n0,1\n",
        "raw/edge-feat": bond * 4,
        "raw/graph-label": "1\n0\n1\n0\n",
        "split/scaffold/train": "0\n3\n",
        "split/scaffold/valid": "1\n",
        "split/scaffold/test": "2\n",
        "mapping/mol": "active,smiles,mol_id\n1,CC,a\n0,C,b\n1,CCC,c\n0,CC,d\n",
    }
    for name, text in {**files, **(changes or {})}.items():
        write_gz(folder / f"{name}.csv.gz", text)
    return folder


def graphs_of(raw: RawDataset) -> list[RawGraph]:
    """All graphs."""
    return [graph for graphs in raw.splits.values() for graph in graphs]


def equal(one: RawGraph, other: RawGraph) -> bool:
    """Whether two molecules are equal, labels included."""
    return (
        np.array_equal(one.x, other.x)
        and np.array_equal(one.edge_index, other.edge_index)
        and np.array_equal(one.edge_attr, other.edge_attr)
        and np.array_equal(np.asarray(one.y, dtype=float), np.asarray(other.y, dtype=float), equal_nan=True)
    )
