"""Checks of datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from harness.data import Dataset, Declaration, RawDataset, RawGraph, check_built, check_declaration
from harness.errors import DataError
from harness.stages.prepare import check, fingerprint, split_tiers
from harness.testing import rig as common
from harness.testing.report import CheckFunction, Skip
from harness.testing.rig import Rig, Trial, global_state, noting_draws, same_seed, works


@dataclass
class DatasetTrial(Trial):
    """A build; its output is the fingerprint."""

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
        with noting_draws("declare() or build()", draws):
            declared = check_declaration(dataset, dataset.declare(self.data_dir))
            raw = check_built(dataset, dataset.build(self.data_dir))
        check(declared, raw)
        outputs = {"fingerprint": fingerprint(split_tiers(declared, raw), declared.version, whole=True)}
        return DatasetTrial(outputs, draws=draws, declared=declared, raw=raw)


def splits_disjoint(rig: DatasetRig) -> Iterator[str]:
    """No graph object is in two splits, and no split repeats another."""
    raw = rig.outcome().raw
    for one, two in combinations(raw.splits, 2):
        if {id(graph) for graph in raw.splits[one]} & {id(graph) for graph in raw.splits[two]}:
            yield f"'{one}' and '{two}' share graph objects"
        left, right = ([_content(graph) for graph in raw.splits[split]] for split in (one, two))
        if left == right:
            yield f"'{two}' repeats '{one}' graph by graph"


def _content(graph: RawGraph) -> tuple[bytes, bytes]:
    return graph.x.tobytes(), graph.edge_index.tobytes()


def sealed(rig: DatasetRig) -> Iterator[str]:
    """No node feature equals the label or an oracle field."""
    declared, raw = rig.outcome().declared, rig.outcome().raw
    graphs = [graph for split in declared.splits for graph in raw.splits[split]]
    if declared.task.kind != "multitask":
        yield from _equal_columns(graphs, "the label", [np.full(len(graph.x), graph.y) for graph in graphs])
    for name in declared.oracle:
        if name.startswith("node_"):
            yield from _equal_columns(graphs, f"the oracle field '{name}'", [graph.oracle[name] for graph in graphs])


def _equal_columns(graphs: Sequence[RawGraph], what: str, values: Sequence[Any]) -> Iterator[str]:
    """Yield a text for each node feature that tells the values of a hidden field apart."""
    rows = np.concatenate([np.asarray(value).reshape(len(value), -1) for value in values])
    truth = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    features = np.concatenate([graph.x for graph in graphs])
    for column in range(features.shape[1] if truth.max() else 0):
        codes = np.unique(features[:, column], return_inverse=True)[1]
        together = len(np.unique(np.stack([codes, truth]), axis=1).T)
        if codes.max() == truth.max() and together == truth.max() + 1:
            yield f"node feature {column} gives {what} away for every node of every split"


def hyperparameters_matter(rig: DatasetRig) -> Iterator[str]:
    """Changing a hyperparameter changes the data where it is declared active, and nothing where it is not."""
    rig.outcome()
    if rig.make().files(rig.data_dir):
        raise Skip("its hyperparameters say which files to read")
    yield from common.hyperparameters_matter(rig)


CHECKS: tuple[CheckFunction, ...] = (
    works,
    splits_disjoint,
    same_seed,
    global_state,
    sealed,
    hyperparameters_matter,
)
