"""What a dataset hands over is checked before it is packed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from harness import DataError, Declaration, Features, RawDataset, RawGraph, Task
from harness.stages.prepare import check, fingerprint, split_tiers

DECLARED = Declaration(Task("binary", 2), Features("numeric", (1,)), environments=2)


def built(env: Any) -> RawDataset:
    def graphs(last: Any) -> list[RawGraph]:
        nothing = np.zeros((2, 0), dtype=np.int64)
        return [RawGraph(np.ones((1, 1), np.float32), nothing, 0, env=value) for value in (0, -1, last)]

    return RawDataset({"train": graphs(env), "val": graphs(7), "test": graphs(0)})


@pytest.mark.parametrize("env", [0.5, True, "1", None, -2, 2, np.float32(1)])
def test_environments_that_are_no_ids_are_refused(env):
    with pytest.raises(
        DataError, match=r"split 'train', graph 2: its environment is .*\(in training to 1, as declared\)"
    ):
        check(DECLARED, built(env))


def test_environments_of_other_splits_may_be_others():
    raw = built(np.int64(1))
    check(DECLARED, raw)
    assert split_tiers(DECLARED, raw)["open"]["val"]["env"].tolist() == [0, -1, 7]


@pytest.mark.parametrize("y", [0.5, float("nan"), np.array([0, 1]), 2, -1, np.zeros(0)])
def test_a_label_that_is_no_class_is_refused(y):
    raw = built(0)
    raw.splits["val"][1].y = y
    with pytest.raises(DataError, match=r"split 'val', graph 1: its label is .*expected one class, from 0 to 1"):
        check(DECLARED, raw)


@pytest.mark.parametrize("y", [[0.3, 1], [7, 1], [-1, 0], [1], [0, 1, 1], 1])
def test_labels_of_tasks_that_are_no_labels_are_refused(y):
    declared, raw = replace(DECLARED, task=Task("multitask", 2, num_tasks=2)), built(0)
    for graph in (graph for graphs in raw.splits.values() for graph in graphs):
        graph.y = np.array([1.0, np.nan])
    check(declared, raw)
    raw.splits["test"][2].y = np.array(y)
    with pytest.raises(DataError, match=r"split 'test', graph 2: its labels are .*expected 2 numbers, 0, 1 or NaN"):
        check(declared, raw)


def test_a_label_may_come_as_any_one_number():
    raw = built(0)
    for graph, y in zip(raw.splits["train"], (1.0, np.array([[1]]), np.bool_(True)), strict=True):
        graph.y = y
    check(DECLARED, raw)
    assert split_tiers(DECLARED, raw)["open"]["train"]["y"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("group", [0.5, -2, None])
def test_groups_that_are_no_ids_are_refused(group):
    raw = built(0)
    for graph in (graph for graphs in raw.splits.values() for graph in graphs):
        graph.groups = {"scaffold": 0}
    raw.splits["train"][2].groups = {"scaffold": group}
    with pytest.raises(DataError, match=r"split 'train', graph 2: its group in 'scaffold' is .*expected 0, 1 … or -1"):
        check(replace(DECLARED, groups=("scaffold",)), raw)


def test_fragments_and_scaffolds_leave_the_fingerprint_as_it_is() -> None:
    plain = {"open": {"train": {"x": torch.ones(2, 3)}}}
    aids = {"group/scaffold": torch.zeros(2), "part_ptr": torch.tensor([0, 1, 2]), "parts/x": torch.ones(4, 3)}
    more = {"open": {"train": {**plain["open"]["train"], **aids}}}
    assert fingerprint(more) == fingerprint(plain)
    assert fingerprint(more, whole=True) != fingerprint(plain, whole=True)
