"""TU graph sets (PROTEINS, DD, NCI1, NCI109 …) from their text files, with the split by graph size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import DataError, Dataset, Declaration, Download, Features, RawDataset, Register, Task, hookimpl, hparam
from plugins.datasets._cut import MAX_DEGREE, cut_graphs, degree_codes
from plugins.datasets._files import given_path, known_folder, required
from plugins.datasets._splits import (
    LARGEST_SEED,
    Split,
    index_files,
    index_split,
    named_shares,
    random_split,
    refuse_seed,
    shuffled,
)
from plugins.datasets._tu_files import REQUIRED, TUFiles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ADDRESS = "https://www.chrsmrrs.com/graphkerneldatasets"


class TU(Dataset):
    """A graph set of the TU collection, by default split by size: trained on small graphs, tested on large ones.

    Morris et al., "TUDataset: A collection of benchmark datasets for learning with graphs", GRL+ 2020; the split
    by size is that of Bevilacqua et al., "Size-Invariant Graph Representations for Graph Classification
    Extrapolations", ICML 2021, which CIGA (Chen et al., NeurIPS 2022) uses on PROTEINS, DD, NCI1 and NCI109 with the
    Matthews correlation. The authors' own draw of validation is known from their index files alone (``split: files``).

    Node labels are codes in ascending order; with ``attributes`` node attributes come first and labels follow as
    indicators, as PyG has them with ``use_node_attr=True``. A set with neither has the number of a node's neighbours as
    its code. Edge labels and attributes are read in the same way. Self-loops and repeated edges are left out, as in
    PyG. Graphs without nodes are left out and listed, by their number from 0.
    """

    name = "tu"
    family = "tu"
    names_files = ("index_folder",)
    listed = tuple({"dataset": name} for name in ("PROTEINS", "DD", "NCI1", "NCI109"))

    dataset: str = hparam("PROTEINS", help="name of the set: PROTEINS, DD, NCI1, NCI109, MUTAG, IMDB-BINARY …")
    split: str = hparam("size", choices=("size", "random", "files"), help="by graph size, by chance, or index files")
    shares: list[float] = hparam(
        [0.8, 0.1, 0.1], active={"split": ["random"]}, help="shares of train, validation and test"
    )
    split_seed: int = hparam(
        0, low=0, high=LARGEST_SEED, active={"split": ["size", "random"]}, help="seed of the split's draw"
    )
    index_folder: str | None = hparam(
        None, active={"split": ["files"]}, help="folder of the index files; none: `split` beside `raw`"
    )
    attributes: bool = hparam(False, help="also read node and edge attributes, where the set has them")
    metric: str = hparam(
        "auto", choices=("auto", "accuracy", "mcc"), help="auto: accuracy with a split by chance, else mcc"
    )

    def declare(self, data_dir: Path | None) -> Declaration:
        """Reads graph labels, and which node and edge labels there are."""
        refuse_seed(self, self.split == "files")
        files = self._found(data_dir)
        classes, nodes = self._classes(files), files.columns("node", self.attributes).features
        return Declaration(
            task=Task(
                "binary" if len(classes) == 2 else "multiclass",
                len(classes),
                metric="accuracy" if self._accuracy else "mcc",
            ),
            node_features=Features("categorical", (MAX_DEGREE + 1,)) if nodes.kind == "none" else nodes,
            edge_features=files.columns("edge", self.attributes).features,
            validation="from index files" if self.split == "files" else "in-distribution",
            variant={"size": "split by graph size", "random": "split by chance", "files": "index files"}[self.split],
            notes=() if self.split == "random" else (self._note(),),
        )

    @property
    def _accuracy(self) -> bool:
        return self.metric == "accuracy" or (self.metric == "auto" and self.split == "random")

    def _note(self) -> str:
        if self.split == "files":
            return "The split is what its index files say."
        return (
            "Split by size: train and validation have at most the median number of nodes, test at least the 90th "
            "percentile, and graphs in between are in no split; validation is thus in-distribution. The tenth that is "
            "validation is drawn here and differs from the one in the authors' index files."
        )

    def files(self, data_dir: Path | None) -> list[Path]:
        """The text files that are read."""
        found = self._found(data_dir)
        kinds = ["node_labels", "edge_labels"] + (["node_attributes", "edge_attributes"] if self.attributes else [])
        read = [found.path(kind) for kind in (*REQUIRED, *filter(found.has, kinds))]
        return read + (list(self._index_files(data_dir).values()) if self.split == "files" else [])

    def downloads(self, data_dir: Path | None) -> Sequence[Download]:
        """The collection's archive of this set."""
        del data_dir
        self._check_name()
        url = f"{ADDRESS}/{self.dataset}.zip"
        return (
            Download(
                path=f"tu/{self.dataset}/raw",
                url=url,
                how=f"unpack {url} and put the files of its folder {self.dataset} there",
                unpack=self.dataset,
                citation="Morris et al., TUDataset, GRL+ workshop at ICML 2020",
            ),
        )

    def build(self, data_dir: Path | None) -> RawDataset:
        """Read the graphs."""
        import numpy as np

        files = self._found(data_dir)
        classes, edges = self._classes(files), files.columns("edge", self.attributes)
        labels = np.searchsorted(classes, files.labels()).tolist()
        sizes = np.bincount(files.graph_of, minlength=len(labels))
        ends, lines, listed = files.edges()
        attr = None if edges.features.kind == "none" else files.features("edge", edges, listed)[lines]
        owners = files.graph_of[ends[0]]
        local, counts = ends - (np.cumsum(sizes) - sizes)[owners], np.bincount(owners, minlength=len(labels))
        graphs = cut_graphs(self._nodes(files, ends), local, attr, sizes, counts, labels)
        rows = self._rows(sizes, data_dir)
        empty = np.flatnonzero(sizes == 0).tolist()
        splits = {name: [graphs[row] for row in chosen] for name, chosen in rows.items()}
        facts = {
            "graphs": len(graphs),
            "in_no_split": len(graphs) - len(empty) - sum(map(len, rows.values())),
            "classes": {str(label): number for number, label in enumerate(classes)},
        }
        return RawDataset(splits, [f"graph {row}: no nodes" for row in empty], facts)

    def _nodes(self, files: TUFiles, ends: NDArray[np.int64]) -> NDArray[Any]:
        """(n, F) features of all nodes; the number of neighbours where the set has none."""
        columns, count = files.columns("node", self.attributes), len(files.graph_of)
        return (
            degree_codes(ends[0], count) if columns.features.kind == "none" else files.features("node", columns, count)
        )

    def _rows(self, sizes: NDArray[np.int64], data_dir: Path | None) -> Split:
        """Rows of graphs that have nodes. Those without move no other: neither a drawn one nor the median."""
        if self.split == "size":
            there = sizes.nonzero()[0]
            return {name: there[rows].tolist() for name, rows in size_shift(sizes[there], self.split_seed).items()}
        if self.split == "files":
            found = index_split(self._index_files(data_dir), len(sizes), f"set '{self.dataset}'")
        else:
            found = random_split(len(sizes), named_shares(self.shares, self.name), self.split_seed)
        return {name: [row for row in rows if sizes[row]] for name, rows in found.items()}

    def _classes(self, files: TUFiles) -> list[int]:
        found = files.values("graph_labels")
        if len(found) != 1 or len(found[0]) < 2:
            raise DataError(f"{files.path('graph_labels')}: expected one label a graph, of 2 classes or more")
        return found[0]

    def _found(self, data_dir: Path | None) -> TUFiles:
        self._check_name()
        files = TUFiles(known_folder(data_dir) / "tu" / self.dataset / "raw", self.dataset)
        for kind in REQUIRED:
            required(files.path(kind), self.downloads(None)[0].how)
        return files

    def _check_name(self) -> None:
        if not re.fullmatch(r"\w[\w.-]*", self.dataset):
            raise DataError(f"dataset 'tu', hyperparameter 'dataset': {self.dataset!r} is not a plain name")

    def _index_files(self, data_dir: Path | None) -> Mapping[str, Path]:
        assert data_dir is not None  # the set's own files were found before
        default = data_dir / "tu" / self.dataset / "split"
        return index_files(default if self.index_folder is None else given_path(self.index_folder, data_dir))


def size_shift(sizes: NDArray[np.int64], split_seed: int) -> Split:
    """The split of Bevilacqua et al.: small graphs for train and validation, the largest tenth for test.

    Args:
        sizes: (graphs,) number of nodes of each.
        split_seed: draws the validation graphs.
    """
    import numpy as np

    median, top = np.median(sizes), np.percentile(sizes, 90)
    small = np.flatnonzero(sizes <= median).tolist()
    count = len(small) // 10
    if count == 0 or median >= top:
        raise DataError(
            f"{len(sizes)} graphs cannot be split by size: {len(small)} have at most the median of {median:g} nodes, "
            f"and the 90th percentile is {top:g}"
        )
    order = shuffled(small, split_seed)
    test = np.flatnonzero(sizes >= top).tolist()
    return {"train": sorted(order[count:]), "val": sorted(order[:count]), "test": test}


@hookimpl
def bench_register(register: Register) -> None:
    register(TU)
