"""Checks of datasets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from harness.data import Dataset, Declaration, RawDataset, RawGraph, check_built, check_declaration
from harness.errors import DataError
from harness.stages.prepare import check, fingerprint, split_tiers
from harness.testing import rig as common
from harness.testing.report import CheckFunction, Note, Skip
from harness.testing.rig import Rig, Trial


@dataclass
class DatasetTrial(Trial):
    """A build; its output is the fingerprint, where the dataset keeps its declaration."""

    declared: Declaration = field(kw_only=True)
    raw: RawDataset = field(kw_only=True)


class DatasetRig(Rig[Dataset, DatasetTrial]):
    """A dataset under test."""

    def trial(self, values: Mapping[str, Any], seed: int) -> DatasetTrial:
        """Declare and build.

        Raises:
            Skip: its files are not there.
        """
        del seed
        dataset, draws = self.make(values), list[str]()
        try:
            files = dataset.files(self.data_dir)
        except DataError as error:
            raise Skip(str(error).partition("\n")[0]) from None
        missing = [file for file in files if not file.is_file()]
        if missing:
            raise Skip(f"{missing[0]} is not there")
        with common.noting_draws("declare() or build()", draws):
            declared = check_declaration(dataset, dataset.declare(self.data_dir))
            raw = check_built(dataset, dataset.build(self.data_dir))
        try:
            check(declared, raw)
            outputs = {"fingerprint": fingerprint(split_tiers(declared, raw), declared.version)}
        except (DataError, KeyError):
            outputs = {}
        return DatasetTrial(outputs, draws=draws, declared=declared, raw=raw)

    def sound(self) -> DatasetTrial:
        """Return the ordinary build of a dataset that keeps its declaration.

        Raises:
            Skip: it does not; another check reports it.
        """
        if not self.outcome().outputs:
            raise Skip("it does not keep its declaration")
        return self.outcome()


def keeps_its_declaration(rig: DatasetRig) -> Iterator[str]:
    """Splits, roles, labels, features and oracle fields are as declared, and graphs can be packed."""
    declared, raw = rig.outcome().declared, rig.outcome().raw
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


def every_class_in_training(rig: DatasetRig) -> Iterator[str]:
    """Each class, or each task's two labels, occurs among the training graphs."""
    declared, raw = rig.outcome().declared, rig.outcome().raw
    train = next(split for split, role in declared.splits.items() if role == "train")
    labels = np.stack([np.asarray(graph.y, dtype=np.float64).reshape(-1) for graph in raw.splits[train]])
    for task, column in enumerate(labels.T):
        absent = set(range(declared.task.num_classes)) - set(column[~np.isnan(column)].astype(int).tolist())
        if absent:
            yield f"no training graph has the label {min(absent)}" + (f" in task {task}" if labels.shape[1] > 1 else "")


def splits_disjoint(rig: DatasetRig) -> Iterator[str]:
    """No graph object is in two splits, and no split repeats another; equal graphs are counted."""
    declared, raw = rig.outcome().declared, rig.outcome().raw
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


def fingerprint_stable(rig: DatasetRig) -> Iterator[str]:
    """Building twice gives the same data, and global generators are neither seeded nor drawn from."""
    rig.sound()
    yield from rig.outcome().draws
    yield from common.same_seed(rig)


def sealed(rig: DatasetRig) -> Iterator[str]:
    """The open part of a test split holds no label, domain or oracle field, and no feature equals one."""
    declared, raw = rig.sound().declared, rig.sound().raw
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
    """Yield a text for each node feature that tells the values of a hidden field apart."""
    truth = np.unique(np.concatenate([np.asarray(value).reshape(-1) for value in values]), return_inverse=True)[1]
    if truth.max() < 1:
        return
    features = np.concatenate([graph.x for graph in graphs])
    for column in range(features.shape[1]):
        codes = np.unique(features[:, column], return_inverse=True)[1]
        together = len(np.unique(np.stack([codes, truth]), axis=1).T)
        if codes.max() == truth.max() and together == truth.max() + 1:
            yield f"node feature {column} gives {what} away for every node of every split"


def hyperparameters_matter(rig: DatasetRig) -> Iterator[str]:
    """Changing a hyperparameter changes the data where it is declared active, and nothing where it is not."""
    rig.sound()
    if rig.make().files(rig.data_dir):
        raise Skip("its hyperparameters say which files to read")
    yield from common.hyperparameters_matter(rig)


CHECKS: tuple[CheckFunction, ...] = (
    keeps_its_declaration,
    every_class_in_training,
    splits_disjoint,
    fingerprint_stable,
    sealed,
    hyperparameters_matter,
)
