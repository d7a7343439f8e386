"""What is read of PyG graphs, and what is refused, in this process."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pyg_kit import write_file

from harness.data import Dataset, Features, RawDataset, Task
from harness.errors import DataError
from harness.stages.prepare import check
from plugins.datasets import pyg
from plugins.datasets._pyg_cache import Extract
from plugins.datasets._pyg_extract import read
from plugins.datasets.pyg import PyG


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The user's file as a module."""
    folder = tmp_path_factory.mktemp("user")
    path = write_file(folder)
    sys.path.append(str(folder))
    spec = importlib.util.spec_from_file_location("pyg_mine_of_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(folder))
    return module


@pytest.fixture
def made(mine: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Declares and builds, with the graphs read in this process."""

    def make(name: str, arguments: dict[str, Any] | None = None, **values: Any) -> tuple[Dataset, RawDataset]:
        from safetensors.numpy import save_file

        def extract(request: dict[str, Any], _: object) -> Extract:
            request = {**request, "target": name}
            parts = [{request["split_argument"]: part} for part in request["parts"]] or [{}]
            made = [getattr(mine, name)(**request["arguments"], **part) for part in parts]
            tables, summary = read(made, request)
            save_file(tables, tmp_path / "graphs.safetensors")
            return Extract(json.loads(json.dumps(summary)), tmp_path / "graphs.safetensors")

        monkeypatch.setattr(pyg, "extract", extract)
        dataset = PyG(dataset=f"mine:{name}", arguments=arguments or {}, **values)
        raw = dataset.build(tmp_path)
        check(dataset.declare(tmp_path), raw)
        return dataset, raw

    return make


def sizes(raw: RawDataset) -> dict[str, int]:
    return {name: len(graphs) for name, graphs in raw.splits.items()}


def test_whole_numbers_are_codes_unless_they_are_called_numbers(made, tmp_path):
    dataset, raw = made("small")
    assert dataset.declare(tmp_path).node_features == Features("categorical", (4,))
    assert raw.splits["val"][0].x.dtype == np.int64
    dataset, raw = made("small", whole_numbers="numbers")
    assert dataset.declare(tmp_path).node_features == Features("numeric", (1,))
    assert raw.splits["val"][0].x.dtype == np.float32
    assert sizes(raw) == {"train": 16, "val": 2, "test": 2}


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("by_split", {}, {"train": [3, 4, 5], "val": [6, 7], "test": [8]}),
        ("small", {"split": "size"}, {"train": list(range(3, 19)), "val": [19, 20], "test": [21, 22]}),
        ("small", {"split": "field"}, {"train": [3, 6, 9, 12, 15, 18, 21], "val": [4, 7, 10, 13, 16, 19, 22]}),
        ("small", {"split": "consecutive", "counts": [5, 3, 2]}, {"train": [3, 4, 5, 6, 7], "test": [11, 12]}),
        ("masked", {"split": "masks"}, {"train": [3, 4], "val": [5, 6], "test": [7, 8]}),
        ("named", {"split": "argument"}, {"train": [3, 4, 5, 6], "val": [9, 10, 11, 12], "test": [11, 12, 13, 14]}),
    ],
)
def test_splits(made, name, values, expected):
    raw = made(name, **values)[1]
    found = {split: [len(graph.x) for graph in graphs] for split, graphs in raw.splits.items()}
    assert {split: found[split] for split in expected} == expected


def test_index_files(made, tmp_path):
    for name, rows in {"train": "3\n1", "val": "0", "test": "19"}.items():
        (tmp_path / f"{name}_idx.txt").write_text(rows)
    dataset, raw = made("small", split="files", index_folder=str(tmp_path))
    assert [len(graph.x) for graph in raw.splits["train"]] == [4, 6]
    assert raw.facts["in_no_split"] == 16
    assert [path.name for path in dataset.files(tmp_path)][1:] == ["train_idx.txt", "val_idx.txt", "test_idx.txt"]


@pytest.mark.parametrize("value", ["ones", "degree"])
def test_graphs_without_x_keep_their_isolated_last_node(made, value):
    raw = made("without_x", node_features=value)[1]
    assert [len(graph.x) for graph in raw.splits["val"]] == [4, 4]
    assert raw.splits["val"][0].x.ravel().tolist() == ([1, 1, 1, 1] if value == "ones" else [1, 1, 0, 0])


def test_graphs_without_x_must_be_counted_and_given_features(made):
    with pytest.raises(DataError, match="choose 'node_features: ones' or 'node_features: degree'"):
        made("without_x")
    with pytest.raises(DataError, match=r"graph 0: has neither 'x' nor 'num_nodes'.*set data\.num_nodes"):
        made("without_x", {"counted": False}, node_features="ones")


def test_a_field_that_some_graphs_lack_is_an_error_whichever_comes_first(made):
    texts = []
    for first in (True, False):
        with pytest.raises(DataError) as caught:
            made("lacking", {"first": first})
        texts.append(str(caught.value))
    text = "lacking: 1 of 20 graphs have no 'edge_attr', such as graph {}; give it to all or to none"
    assert texts == [text.format(0), text.format(19)]


def test_a_field_that_is_not_wanted_may_hold_anything(made, tmp_path):
    dataset, raw = made("lacking", {"first": True}, edge_attr=False)
    assert dataset.declare(tmp_path).edge_features.kind == "none"
    assert sizes(raw) == {"train": 16, "val": 2, "test": 2}
    with pytest.raises(DataError, match="'x' holds NaN"):
        made("changed", {"field": "x", "value": [[1.0, 1e39]] * 4})
    raw = made("changed", {"field": "x", "value": [[1.0, 1e39]] * 4}, node_features="degree")[1]
    found = [graph.x[:, 0].tolist() for graphs in raw.splits.values() for graph in graphs]
    assert sorted(found, key=len) == [[1, 1, 0]] * 19 + [[1, 1, 0, 0]]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "x",
            [[1, 1], [1, 1], [1, 1]],
            "'x' differs between graphs in columns or type: 2 float in graph 0, 2 whole in graph 7",
        ),
        ("x", [[1.0], [1.0], [1.0]], "columns or type: 1 float in graph 7, 2 float in graph 0"),
        ("x", [[1.0, 1e39]] * 3, "graph 7: 'x' holds NaN, an infinity"),
        ("x", [[[1.0]]], "graph 7: 'x' is float32 of shape (1, 1, 1)"),
        ("edge_index", [[0], [3]], "graph 7: 'edge_index' has the nodes 0..3, but there are 3"),
        ("edge_index", [[-1], [0]], "the nodes -1..0"),
        ("edge_index", [[0.0], [1.0]], "graph 7: 'edge_index' is float32 of shape (2, 1)"),
        ("edge_index", [0, 1], "expected whole numbers of shape (2, m)"),
        ("num_nodes", 5, "graph 7: 3 rows of 'x' for 5 nodes"),
        ("y", [[0], [1], [1]], "graph 7: the label 'y' is int64 of shape (3, 1); expected one finite number"),
        (
            "y",
            [[0, 1, 1]],
            "the label differs between graphs in columns or type: 1 float in graph 0, 3 float in graph 7",
        ),
        ("y", [0, 1, 1], "graph 7: the label 'y' is int64 of shape (3,)"),
        ("y", [1e39], "graph 7: the label 'y' is float32 of shape (1,); expected one finite"),
        ("edge_attr", [1.0], "graph 7: 1 rows of 'edge_attr' for 2 edges"),
        ("edge_attr", [1.0, 2.0], "19 of 20 graphs have no 'edge_attr', such as graph 0; give it to all or to none"),
    ],
)
def test_a_graph_that_differs_is_named(made, field, value, message):
    with pytest.raises(DataError) as caught:
        made("changed", {"field": field, "value": value})
    assert message in str(caught.value)


def test_codes_are_checked(made):
    with pytest.raises(DataError, match=r"'x' holds whole numbers from -1 to 3.*whole_numbers: numbers"):
        made("negative")


def test_labels(made, tmp_path):
    dataset, raw = made("tasks")
    assert dataset.declare(tmp_path).task == Task("multitask", 2, 3, "rocauc")
    assert np.isnan(raw.splits["val"][0].y).tolist() == [False, True, False]
    raw = made("missing_label", split="consecutive", counts=[10, 5, 5])[1]
    assert sizes(raw) == {"train": 9, "val": 5, "test": 5}
    assert raw.skipped == ["graph 3: no label"]
    with pytest.raises(DataError, match=r"the labels are 0.5, 1.5, 2.5, 3.5, 4.5 …; expected classes"):
        made("regression")
    with pytest.raises(DataError, match="the label 'target' is missing"):
        made("small", label="target")


def test_indicators_of_classes_are_not_taken_for_tasks(made, tmp_path):
    with pytest.raises(DataError, match="each graph has exactly one 1 among its 2 labels, as indicators of classes"):
        made("indicators")
    assert made("indicators", metric="rocauc")[0].declare(tmp_path).task == Task("multitask", 2, 2, "rocauc")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "expected module:Class or file.py:Class"),
        ({"dataset": ":f"}, "expected module:Class or file.py:Class"),
        ({"dataset": "mine"}, "expected module:Class"),
        ({"dataset": "m:f", "split": "size", "split_seed": 1}, "'split_seed' has no meaning with 'split: size'"),
    ],
)
def test_settings_that_name_nothing(values, message):
    with pytest.raises(DataError, match=message):
        PyG(**values).declare(None)


def test_more_counts_than_graphs(made):
    with pytest.raises(DataError, match=r"'counts': found \[10, 10, 10\]"):
        made("small", split="consecutive", counts=[10, 10, 10])


def test_a_dict_of_splits_is_the_split_and_says_so(made, tmp_path):
    dataset, raw = made("by_split")
    assert sizes(raw) == {"train": 3, "val": 2, "test": 1}
    declared = dataset.declare(tmp_path)
    assert (declared.variant, declared.validation) == ("the data's own split", "as given")
    for values, name in (
        ({"split": "size"}, "split"),
        ({"split_seed": 1}, "split_seed"),
        ({"split": "random"}, "split"),
    ):
        with pytest.raises(DataError, match=f"gives a dict of splits, beside which '{name}' has no meaning; leave it"):
            made("by_split", **values)
    assert made("small")[0].declare(tmp_path).variant == "split by chance"


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "by_split",
            {"names": ["train", "test"]},
            "by_split: gives a dict of 'train', 'test'; expected train, val, test",
        ),
        ("by_split", {"names": ["train", "val", "tset"]}, "gives a dict of 'train', 'val', 'tset'; expected"),
        ("by_split", {"names": ["val", "valid", "test"]}, "gives a dict of 'val', 'valid', 'test'; expected"),
        (
            "by_split",
            {"names": ["train", "val", "test"], "y": None},
            "by_split: graph 0 of val: the label 'y' is missing",
        ),
        (
            "by_split",
            {"bare": True},
            "by_split, split 'train': gives one Data; expected a dataset, a list of graphs, or a dict of them by split",
        ),
        ("by_split", {"none": True}, "by_split, split 'val': there is no graph in it"),
        ("one", {}, "one: gives one Data; expected a dataset, a list of graphs, or a dict of them by split"),
        ("one", {"twice": True}, "one: gives generator; expected a dataset, a list of graphs"),
        ("emptied", {"rows": list(range(20))}, "emptied: none of its 20 graphs has a node"),
    ],
)
def test_what_is_neither_a_list_nor_a_dict_of_splits(made, name, arguments, message):
    with pytest.raises(DataError) as caught:
        made(name, arguments)
    assert message in str(caught.value)


def test_graphs_without_nodes_are_left_out_and_listed_by_their_number(made):
    raw = made("emptied", {"rows": [0, 9, 19]}, split="consecutive", counts=[10, 5, 5])[1]
    assert sizes(raw) == {"train": 8, "val": 5, "test": 4}
    assert raw.skipped == ["graph 0: no nodes", "graph 9: no nodes", "graph 19: no nodes"]
    raw = made("emptied", {"rows": [0, 1]}, split="size")[1]  # graphs of 5 to 22 nodes are left
    assert [len(graph.x) for graph in raw.splits["train"]] == list(range(5, 19))
    assert sizes(raw) == {"train": 14, "val": 2, "test": 2}
    raw = made("by_split", {"empty": True})[1]
    assert raw.skipped == ["graph 1 of val: no nodes"]


def test_a_graph_without_edges_has_no_type_of_edge_features(made, tmp_path):
    dataset, raw = made("edgeless", split="consecutive", counts=[10, 5, 5])
    assert dataset.declare(tmp_path).edge_features == Features("categorical", (3, 3))
    assert raw.splits["train"][0].edge_attr.shape == (0, 2)
