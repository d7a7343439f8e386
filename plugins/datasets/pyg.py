"""Any dataset of PyTorch Geometric, or any list of its graphs, by import path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness import DataError, Dataset, Declaration, Features, RawDataset, Register, Task, hookimpl, hparam
from plugins.datasets._cut import MAX_DEGREE, cut_graphs, degree_codes
from plugins.datasets._files import given_path
from plugins.datasets._pyg_cache import Extract, extract
from plugins.datasets._splits import (
    LARGEST_SEED,
    SPLITS,
    Split,
    consecutive_split,
    index_files,
    index_split,
    named_shares,
    random_split,
    refuse_seed,
    size_split,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

VALIDATION = {"random": "in-distribution", "size": "OOD"}
VARIANTS = {
    "random": "split by chance",
    "size": "split by graph size",
    "files": "index files",
    "consecutive": "split in the order of the data",
}
MAX_CLASSES = 1000
LARGEST_CODE = 100_000
DRAWN = ("auto", "random", "size")


class PyG(Dataset):
    """Any dataset of PyTorch Geometric: a shipped class, your own, or a function that gives its graphs.

    Fey and Lenssen, *Fast Graph Representation Learning with PyTorch Geometric*, RLGM workshop at ICLR 2019.

    The class runs once, in a process of its own with global generators seeded with 0; its graphs are kept as plain
    arrays in the store, and their content enters the key, until its code, raw files, arguments, the files named in
    ``watch`` or the versions of torch, PyG and NumPy change. Files that the class keeps are read as
    pickles, which can run code, in that process alone: take classes and their files from whom you trust.

    The number of nodes is that of the rows of ``x``, else ``num_nodes``; it is never guessed from the edges. One label
    is a class (any whole numbers, ascending), several in a row of shape (1, T) are tasks with labels 0, 1 or NaN. Give
    both directions of an undirected edge. Graphs without nodes or without a label are left out and listed.
    """

    name = "pyg"
    family = "pyg"
    names_code = ("dataset",)
    names_files = ("watch", "index_folder")

    dataset: str = hparam("", help="module:Class or file.py:Class, e.g. torch_geometric.datasets:GNNBenchmarkDataset")
    arguments: dict[str, Any] = hparam({}, help="the class's arguments, e.g. {name: CSL}")
    watch: list[str] = hparam([], help="other files that the class reads: when they change, it runs again")
    label: str = hparam("y", help="the field of the label")
    split: str = hparam(
        "auto",
        choices=("auto", "random", "size", "files", "field", "masks", "argument", "consecutive"),
        help="auto: that of a function's dict, else by chance; by graph size, index files, a field of each graph, "
        "train_mask …, an argument, or in order",
    )
    shares: list[float] = hparam([0.8, 0.1, 0.1], active={"split": DRAWN}, help="shares of train, validation and test")
    split_seed: int = hparam(
        0, low=0, high=LARGEST_SEED, active={"split": ["auto", "random"]}, help="seed of the split's draw"
    )
    index_folder: str = hparam(
        "", active={"split": ["files"]}, help="folder of train_idx.txt, val_idx.txt, test_idx.txt"
    )
    split_field: str = hparam("split", active={"split": ["field"]}, help="field: 0 or train, 1 or val, 2 or test")
    split_argument: str = hparam(
        "split", active={"split": ["argument"]}, help="the class's argument that takes train, val and test"
    )
    counts: list[int] = hparam(
        [], low=1, active={"split": ["consecutive"]}, help="graphs of train, validation and test"
    )
    node_features: str = hparam("x", choices=("x", "ones", "degree"), help="ones or degree for graphs without features")
    edge_attr: bool = hparam(True, help="read edge_attr, where the graphs have it")
    whole_numbers: str = hparam("codes", choices=("codes", "numbers"), help="how features of whole numbers are read")
    metric: str = hparam(
        "auto", choices=("auto", "accuracy", "rocauc", "mcc"), help="auto: rocauc for several tasks, else accuracy"
    )

    def declare(self, data_dir: Path | None) -> Declaration:
        """Reads what is known of the graphs; the first time, the graphs."""
        summary = self._extract(data_dir).summary
        split = self._split(summary)
        return Declaration(
            task=self._task(summary),
            node_features=self._node_features(summary),
            edge_features=self._edge_features(summary),
            validation=VALIDATION.get(split, "as given"),
            variant=VARIANTS.get(split, "the data's own split"),
        )

    def files(self, data_dir: Path | None) -> list[Path]:
        """The graphs as they were read, and index files."""
        return [self._extract(data_dir).file, *self._index_files(data_dir).values()]

    def build(self, data_dir: Path | None) -> RawDataset:
        """Cut the graphs out of the arrays, and split them."""
        from safetensors.numpy import load_file

        task = self.declare(data_dir).task
        found = self._extract(data_dir)
        tables = load_file(found.file)
        x, attr, labels = self._nodes(tables), self._edges(tables), _labels(tables["y"], found.summary, task)
        graphs = cut_graphs(x, tables["edge_index"], attr, tables["nodes"], tables["edges"], labels)
        left_out: dict[int, str] = dict(found.summary["left_out"])
        rows = {
            name: [row for row in chosen if row not in left_out]
            for name, chosen in self._rows(tables, found.summary, data_dir).items()
        }
        facts = {
            "graphs": len(graphs),
            "in_no_split": len(graphs) - len(left_out) - sum(map(len, rows.values())),
            "classes": [] if task.kind == "multitask" else [_number(value) for value in found.summary["values"]],
        }
        splits = {name: [graphs[row] for row in chosen] for name, chosen in rows.items()}
        return RawDataset(splits, list(left_out.values()), facts)

    def _nodes(self, tables: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        import numpy as np

        total = int(tables["nodes"].sum())
        if self.node_features == "ones":
            return np.ones((total, 1), dtype=np.float32)
        if self.node_features == "degree":
            starts = np.cumsum(tables["nodes"]) - tables["nodes"]
            return degree_codes(tables["edge_index"][0] + np.repeat(starts, tables["edges"]), total)
        return self._read(tables["x"])

    def _edges(self, tables: Mapping[str, NDArray[Any]]) -> NDArray[Any] | None:
        return self._read(tables["edge_attr"]) if self.edge_attr and "edge_attr" in tables else None

    def _read(self, table: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        return table.astype(np.float32) if self.whole_numbers == "numbers" else table

    def _split(self, summary: Mapping[str, Any]) -> str:
        """Return the kind of split; ``auto`` becomes ``given`` or ``random``."""
        if not summary["own_splits"]:
            return "random" if self.split == "auto" else self.split
        chosen = [name for name in ("split", "shares", "split_seed") if self.values[name] != self.hparams[name].default]
        if chosen:
            raise DataError(
                f"'{self.dataset}' gives a dict of splits, beside which '{chosen[0]}' has no meaning; leave it out, or "
                "give one list of graphs"
            )
        return "given"

    def _rows(self, tables: Mapping[str, NDArray[Any]], summary: Mapping[str, Any], data_dir: Path | None) -> Split:
        """Graphs that are left out move no other: neither a drawn one nor a cut between sizes."""
        count, split = len(tables["nodes"]), self._split(summary)
        if split == "files":
            return index_split(self._index_files(data_dir), count, f"'{self.dataset}'")
        if split == "consecutive":
            return consecutive_split(count, self.counts, self.name)
        if split == "random":
            return random_split(count, named_shares(self.shares, self.name), self.split_seed)
        if split == "size":
            there = tables["nodes"].nonzero()[0]
            found = size_split(tables["nodes"][there].tolist(), named_shares(self.shares, self.name))
            return {name: there[rows].tolist() for name, rows in found.items()}
        rows = {name: (tables["split"] == number).nonzero()[0].tolist() for number, name in enumerate(SPLITS)}
        empty = [name for name, found in rows.items() if not found]
        if empty:
            raise DataError(f"'{self.dataset}': no graph is in the split {' or '.join(empty)}")
        return rows

    def _task(self, summary: Mapping[str, Any]) -> Task:
        several, values = summary["tasks"] > 1, summary["values"]
        metric: Literal["accuracy", "rocauc", "mcc"] = "rocauc" if several else "accuracy"
        if self.metric != "auto":
            metric = self.metric  # type: ignore[assignment]
        if several:
            if not set(values) <= {0.0, 1.0}:
                raise DataError(
                    f"'{self.dataset}': {summary['tasks']} labels a graph, with {_some(values)}; expected 0, 1 or NaN"
                )
            if summary["indicators"] and self.metric == "auto":
                raise DataError(
                    f"'{self.dataset}': each graph has exactly one 1 among its {summary['tasks']} labels, as "
                    "indicators of classes have; give the number of the class as the one label, or choose "
                    "'metric: rocauc' where they are tasks"
                )
            return Task("multitask", 2, summary["tasks"], metric)
        if len(values) > MAX_CLASSES or not all(float(value).is_integer() for value in values):
            raise DataError(
                f"'{self.dataset}': the labels are {_some(values)}; expected classes as whole numbers "
                "(regression is not supported)"
            )
        if len(values) < 2:
            raise DataError(f"'{self.dataset}': the labels are of one class")
        return Task("binary" if len(values) == 2 else "multiclass", len(values), metric=metric)

    def _node_features(self, summary: Mapping[str, Any]) -> Features:
        if self.node_features == "ones":
            return Features("numeric", (1,))
        if self.node_features == "degree":
            return Features("categorical", (MAX_DEGREE + 1,))
        if summary["x"] is None:
            raise DataError(
                f"'{self.dataset}': its graphs have no 'x'; choose 'node_features: ones' or 'node_features: degree'"
            )
        return self._features(summary["x"], "x")

    def _edge_features(self, summary: Mapping[str, Any]) -> Features:
        found = summary["edge_attr"] if self.edge_attr else None
        return Features("none") if found is None else self._features(found, "edge_attr")

    def _features(self, found: Mapping[str, Any], name: str) -> Features:
        if not found["whole"] or self.whole_numbers == "numbers":
            return Features("numeric", (found["width"],))
        if min(found["low"]) < 0 or max(found["high"]) >= LARGEST_CODE:
            raise DataError(
                f"'{self.dataset}': '{name}' holds whole numbers from {min(found['low'])} to {max(found['high'])}, "
                "which are no codes; choose 'whole_numbers: numbers'"
            )
        return Features("categorical", tuple(high + 1 for high in found["high"]))

    def _extract(self, data_dir: Path | None) -> Extract:
        place, _, name = self.dataset.rpartition(":")
        if not place or not name.isidentifier():
            raise DataError(
                f"dataset 'pyg', hyperparameter 'dataset': {self.dataset!r}; expected module:Class or file.py:Class"
            )
        refuse_seed(self, self.split not in ("auto", "random"))
        if place.endswith(".py"):
            place = str(given_path(place, Path.cwd()))
        return extract(
            {
                "target": f"{place}:{name}",
                "arguments": self.arguments,
                "root": None if data_dir is None else str(data_dir.absolute() / "pyg" / name),
                "fields": (["x"] if self.node_features == "x" else []) + (["edge_attr"] if self.edge_attr else []),
                "label": self.label,
                "split_field": {"field": self.split_field, "masks": "masks", "argument": "parts"}.get(self.split),
                "split_argument": self.split_argument,
                "parts": list(SPLITS) if self.split == "argument" else [],
                "watch": [str(given_path(path, data_dir)) for path in self.watch],
            },
            self.read_once,
        )

    def _index_files(self, data_dir: Path | None) -> Mapping[str, Path]:
        return index_files(given_path(self.index_folder, data_dir)) if self.split == "files" else {}


def _labels(y: NDArray[Any], summary: Mapping[str, Any], task: Task) -> Sequence[Any]:
    """The label of each graph: a row for several tasks, else the number of its class."""
    import numpy as np

    if task.kind == "multitask":
        return list(y.astype(np.float32))
    classes: list[int] = np.searchsorted(summary["values"], y[:, 0]).tolist()
    return classes


def _number(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value


def _some(values: Sequence[float]) -> str:
    told = ", ".join(f"{_number(value)}" for value in values[:5])
    return f"{told} …" if len(values) > 5 else told


@hookimpl
def bench_register(register: Register) -> None:
    register(PyG)
