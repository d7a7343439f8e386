"""Checks of datasets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from harness.data import Dataset, Declaration, RawDataset, RawGraph, check_built, check_declaration
from harness.errors import DataError
from harness.stages.prepare import check, fingerprint, split_tiers
from harness.testing.report import CheckFunction, Note, Skip
from harness.testing.rng import all_states
from harness.testing.settings import EVERYWHERE, effects_as_declared


@dataclass
class DatasetSubject:
    """A dataset's class, where data files are, and what was built so far."""

    cls: type[Dataset]
    data_dir: Path | None = None
    _built: dict[str, tuple[Declaration, RawDataset]] = field(default_factory=dict, repr=False)

    @property
    def base(self) -> dict[str, Any]:
        """The settings of ``probes["*"]``, which make the dataset small."""
        return dict(self.cls.probes.get(EVERYWHERE, {}))

    def built(self, values: Mapping[str, Any] | None = None) -> tuple[Declaration, RawDataset]:
        """What it declares and builds.

        Raises:
            Skip: its files are not there.
        """
        settings = {**self.base, **(values or {})}
        key = json.dumps(settings, sort_keys=True)
        if key not in self._built:
            dataset = self.cls(**settings)
            try:
                files = dataset.files(self.data_dir)
            except DataError as error:
                raise Skip(str(error).partition("\n")[0]) from None
            missing = [file for file in files if not file.is_file()]
            if missing:
                raise Skip(f"{missing[0]} is not there")
            self._built[key] = (
                check_declaration(dataset, dataset.declare(self.data_dir)),
                check_built(dataset, dataset.build(self.data_dir)),
            )
        return self._built[key]

    def sound(self) -> tuple[Declaration, RawDataset]:
        """As :meth:`built`, for checks that need a dataset that keeps its declaration.

        Raises:
            Skip: it does not; another check tells of it.
        """
        declared, raw = self.built()
        try:
            check(declared, raw)
            split_tiers(declared, raw)
        except (DataError, KeyError):
            raise Skip("it does not keep its declaration") from None
        return declared, raw

    def fingerprint(self, values: Mapping[str, Any] | None = None) -> str:
        """The digest of everything that is stored."""
        declared, raw = self.built(values)
        return fingerprint(split_tiers(declared, raw), declared.version)


def keeps_its_declaration(subject: DatasetSubject) -> Iterator[str]:
    """Splits, roles, labels, features and oracle fields are as declared, and graphs can be packed.

    Cause: `declare` and `build` disagree on splits, widths of features, number of classes or oracle fields.

    Look at: declare, build
    """
    declared, raw = subject.built()
    roles = list(declared.splits.values())
    if roles.count("train") != 1 or "test" not in roles:
        yield f"splits have the roles {roles}, expected one train and at least one test"
    if declared.splits.get(declared.default_val) != "val":
        yield f"the default validation split '{declared.default_val}' has not the role val"
    lacking = {
        name for graphs in raw.splits.values() for g in graphs for name in declared.oracle if name not in g.oracle
    }
    yield from (f"a graph lacks the declared oracle field '{name}'" for name in sorted(lacking))
    try:
        check(declared, raw)
        if not lacking:
            split_tiers(declared, raw)
    except DataError as error:
        yield str(error)


def every_class_in_training(subject: DatasetSubject) -> Iterator[str]:
    """Each class, or each task's two labels, occurs among the training graphs.

    Cause: a split that leaves a class out, or labels that do not start from 0.

    Look at: build, declare
    """
    declared, raw = subject.built()
    train = next(split for split, role in declared.splits.items() if role == "train")
    labels = np.stack([np.asarray(graph.y, dtype=np.float64).reshape(-1) for graph in raw.splits[train]])
    for task, column in enumerate(labels.T):
        absent = set(range(declared.task.num_classes)) - set(column[~np.isnan(column)].astype(int).tolist())
        if absent:
            yield f"no training graph has the label {min(absent)}" + (f" in task {task}" if labels.shape[1] > 1 else "")


def splits_disjoint(subject: DatasetSubject) -> Iterator[str]:
    """No graph object is in two splits, and no split repeats another; equal graphs are counted.

    Cause: one list of graphs cut twice, or the same generator state for two splits.

    Look at: build
    """
    declared, raw = subject.built()
    prints = {split: [_print(graph) for graph in raw.splits[split]] for split in declared.splits}
    for one, two in combinations(declared.splits, 2):
        if {id(graph) for graph in raw.splits[one]} & {id(graph) for graph in raw.splits[two]}:
            yield f"'{one}' and '{two}' share graph objects"
        elif prints[one] == prints[two]:
            yield f"'{two}' repeats '{one}' graph by graph"
        shared = sum(item in set(prints[one]) for item in prints[two])
        if shared:
            yield Note(f"{shared} of {len(prints[two])} graphs of '{two}' equal one of '{one}', node by node")


def _print(graph: RawGraph) -> str:
    edges = np.ascontiguousarray(graph.edge_index[:, np.lexsort(graph.edge_index)])
    parts = (graph.x, edges, *(() if graph.edge_attr is None else (graph.edge_attr[np.lexsort(graph.edge_index)],)))
    return hashlib.sha256(b"|".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def fingerprint_stable(subject: DatasetSubject) -> Iterator[str]:
    """Building twice gives the same data, and global generators are neither seeded nor drawn from.

    Cause: a draw from a global generator, an unseeded `np.random.default_rng()`, or the order of a set or of files
    in a folder.

    Look at: build
    """
    subject.sound()
    first = subject.fingerprint()
    dataset = subject.cls(**subject.base)
    before = all_states()
    declared = dataset.declare(subject.data_dir)
    again = fingerprint(split_tiers(declared, dataset.build(subject.data_dir)), declared.version)
    if all_states() != before:
        yield "declare() or build() changes the state of torch's, NumPy's or Python's global generator"
    if again != first:
        yield f"two builds differ: fingerprints {first[:12]} and {again[:12]}"


def sealed(subject: DatasetSubject) -> Iterator[str]:
    """What methods may read of a test split holds no label, domain or oracle field, and no feature equals one.

    Cause: a feature column that copies the label or an oracle field.

    Look at: build, declare
    """
    declared, raw = subject.sound()
    tiers = split_tiers(declared, raw)
    hidden = {"y", "env", *declared.oracle}
    for split, role in declared.splits.items():
        leaked = hidden & set(tiers["open"][split]) if role == "test" else set()
        yield from (f"the open tier of '{split}' holds '{name}'" for name in sorted(leaked))
    graphs = [graph for split in declared.splits for graph in raw.splits[split]]
    if declared.task.kind != "multitask":
        yield from _equal_columns(graphs, "the label", [np.full(len(graph.x), graph.y) for graph in graphs])
    for name in declared.oracle:
        if name.startswith("node_"):
            yield from _equal_columns(graphs, f"the oracle field '{name}'", [graph.oracle[name] for graph in graphs])


def _equal_columns(graphs: Sequence[RawGraph], what: str, values: Sequence[Any]) -> Iterator[str]:
    """A text for each node feature that takes one value for each value of a hidden field, and different ones."""
    truth = np.unique(np.concatenate([np.asarray(value).reshape(-1) for value in values]), return_inverse=True)[1]
    if truth.max() < 1:
        return
    features = np.concatenate([graph.x for graph in graphs])
    for column in range(features.shape[1]):
        codes = np.unique(features[:, column], return_inverse=True)[1]
        together = len(np.unique(np.stack([codes, truth]), axis=1).T)
        if codes.max() == truth.max() and together == truth.max() + 1:
            yield f"node feature {column} gives {what} away for every node of every split"


def hyperparameters_matter(subject: DatasetSubject) -> Iterator[str]:
    """Changing a hyperparameter, where it is declared active, changes the data.

    Cause: nothing reads `self.NAME`; or it is read in one mode only (declare `active`), or small data do not show
    it (give settings in `probes`).

    Look at: build, declare
    """
    subject.sound()
    if subject.cls(**subject.base).files(subject.data_dir):
        raise Skip("its hyperparameters say which files to read")

    def differ(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
        return subject.fingerprint(one) != subject.fingerprint(two)

    yield from effects_as_declared(subject.cls, subject.base, differ)


CHECKS: tuple[CheckFunction, ...] = (
    keeps_its_declaration,
    every_class_in_training,
    splits_disjoint,
    fingerprint_stable,
    sealed,
    hyperparameters_matter,
)
