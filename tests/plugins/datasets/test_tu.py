"""TU sets: against PyG's reader on PROTEINS, the split by size, every fault of a file, mutations."""

from __future__ import annotations

import random
import re
from pathlib import Path

import molecule_kit
import numpy as np
import pytest
from tu_kit import TEXTS, read_plainly, write_tu

from harness.data import Features, RawDataset, RawGraph, Task
from harness.errors import DataError
from harness.stages.prepare import check
from plugins.datasets._splits import random_split
from plugins.datasets.tu import TU, size_shift

QUARTERS = {"split": "random", "shares": [0.5, 0.25, 0.25]}


@pytest.fixture(scope="module")
def proteins(data_dir: Path) -> Path:
    """The data folder, where it has the set."""
    if not (data_dir / "tu/PROTEINS/raw").is_dir():
        pytest.skip("no real data: tu/PROTEINS/raw is not there")
    return data_dir


def tiny(data_dir: Path, **values: object) -> RawDataset:
    """The tiny set, checked against its declaration."""
    dataset = TU(**{"dataset": "TINY", **QUARTERS, **values})
    dataset.files(data_dir)
    declared, raw = dataset.declare(data_dir), dataset.build(data_dir)
    check(declared, raw)
    return raw


def in_order(data_dir: Path, **values: object) -> list[RawGraph]:
    """The tiny set's graphs in the order of the files."""
    folder = data_dir / "rows"
    folder.mkdir(exist_ok=True)
    for name, rows in {"train": "0\n1", "val": "2", "test": "3"}.items():
        (folder / f"{name}_idx.txt").write_text(rows)
    raw = tiny(data_dir, split="files", index_folder="rows", **values)
    return [graph for name in ("train", "val", "test") for graph in raw.splits[name]]


def test_proteins_is_split_by_size_as_published(proteins):
    raw = TU().build(proteins)
    assert {name: len(graphs) for name, graphs in raw.splits.items()} == {"train": 511, "val": 56, "test": 112}
    sizes = {name: [len(graph.x) for graph in graphs] for name, graphs in raw.splits.items()}
    assert max(sizes["train"] + sizes["val"]) == 26
    assert min(sizes["test"]) == 81
    assert raw.facts["classes"] == {"1": 0, "2": 1}
    assert raw.facts["in_no_split"] == 1113 - 679
    again, other = TU().build(proteins), TU(split_seed=1).build(proteins)
    assert [len(graph.x) for graph in again.splits["val"]] == sizes["val"]
    assert [len(graph.x) for graph in other.splits["val"]] != sizes["val"]
    assert [len(graph.x) for graph in other.splits["test"]] == sizes["test"]


def test_proteins_is_what_pyg_reads(proteins):
    from torch_geometric.io import read_tu_data

    theirs, slices, _ = read_tu_data(str(proteins / "tu/PROTEINS/raw"), "PROTEINS")
    split = random_split(1113, {"train": 0.8, "val": 0.1, "test": 0.1}, 0)
    for attributes, kind in ((False, Features("categorical", (3,))), (True, Features("numeric", (4,)))):
        dataset = TU(split="random", attributes=attributes)
        assert dataset.declare(proteins).node_features == kind
        raw = dataset.build(proteins)
        for name, chosen in split.items():
            for row, graph in zip(chosen, raw.splits[name], strict=True):
                nodes, edges = slice(*slices["x"][row : row + 2]), slice(*slices["edge_index"][row : row + 2])
                assert np.array_equal(graph.edge_index, theirs.edge_index[:, edges].numpy())
                x = graph.x if attributes else np.eye(3)[graph.x[:, 0]]
                assert np.array_equal(x, theirs.x[nodes, 0 if attributes else 1 :].numpy())
                assert graph.y == theirs.y[row]


def test_the_tiny_set_in_full(tmp_path):
    write_tu(tmp_path)
    graphs = in_order(tmp_path)
    assert [graph.x.tolist() for graph in graphs] == [[[0], [2], [0]], [[1], [2]], [[0], [0]], [[1], [1], [2]]]
    assert [graph.y for graph in graphs] == [1, 0, 1, 0]
    assert graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graphs[3].edge_index.tolist() == [[0, 1], [1, 0]]
    assert graphs[3].edge_attr.tolist() == [[0], [1]]
    assert tiny(tmp_path).facts["classes"] == {"-1": 0, "7": 1}


def test_attributes_come_first_and_labels_follow_as_indicators(tmp_path):
    write_tu(tmp_path)
    assert TU(dataset="TINY", attributes=True, **QUARTERS).declare(tmp_path).node_features == Features("numeric", (5,))
    assert (
        in_order(tmp_path, attributes=True)[1].x.tolist()
        == np.float32([[3.5, -0.3, 0, 1, 0], [4.5, -0.4, 0, 0, 1]]).tolist()
    )


def test_degrees_stand_in_where_there_is_neither_label_nor_attribute(tmp_path):
    write_tu(tmp_path, {"node_labels": None, "node_attributes": None, "edge_labels": None})
    declared = TU(dataset="TINY", **QUARTERS).declare(tmp_path)
    assert (declared.node_features, declared.edge_features) == (Features("categorical", (101,)), Features("none"))
    assert [graph.x.ravel().tolist() for graph in in_order(tmp_path)] == [[1, 2, 1], [1, 1], [1, 1], [1, 1, 0]]


def test_attributes_alone_are_left_out_only_on_request(tmp_path):
    """Without ``attributes`` a set that has nothing else gets degrees."""
    write_tu(tmp_path, {"node_labels": None})
    assert TU(dataset="TINY", **QUARTERS).declare(tmp_path).node_features.kind == "categorical"
    assert TU(dataset="TINY", attributes=True, **QUARTERS).declare(tmp_path).node_features == Features("numeric", (2,))


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path):
    write_tu(tmp_path)
    plain = in_order(tmp_path, attributes=True)
    write_tu(tmp_path, {kind: "\ufeff" + text.replace("\n", "\r\n") + "\r\n" for kind, text in TEXTS.items()})
    for one, two in zip(plain, in_order(tmp_path, attributes=True), strict=True):
        assert molecule_kit.equal(one, two)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (
            "graph_indicator",
            "1\n1\n2\n1\n2\n3\n3\n4\n4\n4\n",
            "line 4: found graph 1; nodes must be listed graph by graph",
        ),
        ("graph_indicator", "0\n0\n0\n1\n1\n2\n2\n3\n3\n3\n", "line 1: found graph 0"),
        ("graph_labels", "7\n-1\n7\n", "graph_labels.txt: 3 lines, but the set has 4"),
        ("graph_labels", "7\n7\n7\n7\n", "of 2 classes or more"),
        ("graph_labels", "7,1\n-1,1\n7,1\n-1,1\n", "expected one label a graph"),
        ("graph_labels", "7\n-1.5\n7\n-1\n", "line 2: found '-1.5', but expected whole numbers"),
        ("graph_labels", "7\n\n-1\n7\n-1\n", "line 2: found ''"),
        ("graph_labels", "7\n-1\n9" + 30 * "9", "line 3: found '999999"),
        ("A", "1, 4\n", "line 1: an edge from 1 to 4; expected two of the nodes 1..10, of one graph"),
        ("A", "1, 2\n2, 11\n", "line 2: an edge from 2 to 11"),
        ("A", "1, 2\n2\n", "line 2: found '2', but expected whole numbers between commas"),
        ("A", "1\n2\n", "1 numbers in each line, but expected 2"),
        ("A", "1, 2\n1 3\n", "line 2: found '1 3', but expected whole numbers"),
        ("A", "", "the file is empty"),
        ("A", " \n\n", "line 1: found ''"),
        ("node_labels", "0\n5\n", "2 lines, but the set has 10"),
        ("node_labels", "0\n5,6\n", "line 2: found '5,6'"),
        ("node_attributes", "1.0\n" * 9 + "nan\n", "line 10: found 'nan', but expected numbers"),
        ("node_attributes", "1.0\n" * 9 + "1e99\n", "line 10: found '1e99'"),
        ("edge_labels", "1\n", "1 lines, but the set has 12"),
    ],
)
def test_every_fault_is_told_with_its_place(tmp_path, kind, text, message):
    write_tu(tmp_path, {kind: text})
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        tiny(tmp_path, attributes=True)
    assert str(tmp_path / "tu/TINY/raw" / f"TINY_{kind}.txt") in str(caught.value)


def test_missing_files_say_where_to_put_what(tmp_path):
    with pytest.raises(DataError, match=r"(?s)missing data file: .*tu/TINY/raw/TINY_A.txt.*TINY\.zip"):
        TU(dataset="TINY").files(tmp_path)
    folder = write_tu(tmp_path)
    with pytest.raises(DataError, match="no data folder"):
        TU().declare(None)
    with pytest.raises(DataError, match="not a plain name"):
        TU(dataset="../x").declare(tmp_path)
    (folder / "TINY_A.txt").unlink()
    (folder / "TINY_A.txt").mkdir()
    with pytest.raises(DataError, match="a file is expected here"):
        TU(dataset="TINY").files(tmp_path)


def test_index_files_are_inputs_and_take_no_seed(tmp_path):
    write_tu(tmp_path)
    in_order(tmp_path)
    dataset = TU(dataset="TINY", split="files", index_folder="rows")
    names = [path.name for path in dataset.files(tmp_path)]
    assert names[-3:] == ["train_idx.txt", "val_idx.txt", "test_idx.txt"]
    assert "TINY_node_attributes.txt" not in names
    with pytest.raises(DataError, match="'split_seed' has no meaning with 'split: files'"):
        TU(dataset="TINY", split="files", split_seed=1).declare(tmp_path)
    with pytest.raises(DataError, match="missing data file"):
        TU(dataset="TINY", split="files", index_folder="~nobody-of-this-name/rows").files(tmp_path)


@pytest.mark.parametrize(
    ("values", "metric"),
    [
        ({}, "mcc"),
        ({"split": "random"}, "accuracy"),
        ({"metric": "accuracy"}, "accuracy"),
        ({"split": "random", "metric": "mcc"}, "mcc"),
    ],
)
def test_the_metric_follows_the_split(tmp_path, values, metric):
    write_tu(tmp_path)
    assert TU(dataset="TINY", **values).declare(tmp_path).task == Task("binary", 2, metric=metric)


def test_graphs_without_nodes_are_left_out_and_listed_by_their_number(tmp_path):
    """As in Fingerprint: the indicator skips them, or ends before them, and their labels are there."""
    labels = "-1\n7\n-1\n7\n7\n-1\n7\n"  # graphs 0, 3 and 6, counted from 0, have no nodes
    indicator = "2\n2\n2\n3\n3\n5\n5\n6\n6\n6\n"
    write_tu(tmp_path)
    plain = in_order(tmp_path, attributes=True)
    write_tu(tmp_path, {"graph_indicator": indicator, "graph_labels": labels})
    for name, rows in {"train": "0\n1\n2", "val": "4\n6", "test": "5"}.items():
        (tmp_path / "rows" / f"{name}_idx.txt").write_text(rows)
    raw = tiny(tmp_path, split="files", index_folder="rows", attributes=True)
    found = [graph for name in ("train", "val", "test") for graph in raw.splits[name]]
    assert all(map(molecule_kit.equal, found, plain))
    assert raw.skipped == ["graph 0: no nodes", "graph 3: no nodes", "graph 6: no nodes"]
    assert (raw.facts["graphs"], raw.facts["in_no_split"]) == (7, 0)


def test_graphs_without_nodes_count_in_no_median(tmp_path):
    """Graph i of 40 has i nodes: without graph 0 the median is 20 and the 90th percentile 36 (35.2 and above)."""
    nodes = "".join(f"{i + 1}\n" * i for i in range(40))
    labels = "".join(f"{i % 2}\n" for i in range(40))
    changes = {"graph_indicator": nodes, "graph_labels": labels, "A": "2, 3\n3, 2\n"}
    write_tu(tmp_path, {**dict.fromkeys(TEXTS), **changes})
    raw = tiny(tmp_path, split="size")
    sizes = {name: sorted(len(graph.x) for graph in graphs) for name, graphs in raw.splits.items()}
    assert sorted(sizes["train"] + sizes["val"]) == list(range(1, 21))
    assert sizes["test"] == [36, 37, 38, 39]
    assert raw.facts["in_no_split"] == 15


def test_a_set_without_large_graphs_is_not_split_by_size():
    with pytest.raises(DataError, match="the 90th percentile is 5"):
        size_shift(np.full(40, 5), 0)
    with pytest.raises(DataError, match="9 graphs cannot be split by size"):
        size_shift(np.arange(9), 0)


def test_mutated_files_give_an_error_or_what_they_say(tmp_path):
    outcomes = try_mutations(tmp_path, 500, seed=0)
    assert min(outcomes.values()) > 30, outcomes


def try_mutations(data_dir: Path, count: int, seed: int) -> dict[str, int]:
    """Random changes of bytes, against a reader that knows the rules alone."""
    folder = write_tu(data_dir)
    dataset = TU(dataset="TINY", split="files", index_folder="rows", attributes=True)
    original = in_order(data_dir, attributes=True)
    draws, outcomes = random.Random(seed), {"error": 0, "equal": 0}
    assert all(map(molecule_kit.equal, original, read_plainly(folder)))
    for _ in range(count):
        kind = draws.choice(list(TEXTS))
        path = folder / f"TINY_{kind}.txt"
        path.write_bytes(mutate(TEXTS[kind].encode(), draws))
        try:
            expected = read_plainly(folder)
        except (ValueError, IndexError, OverflowError):
            with pytest.raises(DataError):
                dataset.build(data_dir)
            outcomes["error"] += 1
        else:
            raw = dataset.build(data_dir)
            found = [graph for name in ("train", "val", "test") for graph in raw.splits[name]]
            assert len(found) == len(expected)
            assert all(map(molecule_kit.equal, found, expected))
            outcomes["equal"] += 1
        path.write_bytes(TEXTS[kind].encode())
    return outcomes


def mutate(data: bytes, draws: random.Random) -> bytes:
    """One or two changes: a byte replaced, left out or put in, a cut, a line repeated or left out."""
    for _ in range(draws.choice((1, 1, 2))):
        place, lines = draws.randrange(len(data) or 1), data.split(b"\n")
        new = draws.choice((b"0", b"1", b"9", b",", b"-", b"\n", b"\r\n", b" ", b".", b"e", b"x", b"\xff", b"\0"))
        number = draws.randrange(len(lines))
        data = draws.choice(
            (
                data[:place] + new + data[place + 1 :],
                data[:place] + data[place + 1 :],
                data[:place] + new + data[place:],
                data[:place],
                b"\n".join([*lines[:number], lines[number], *lines[number:]]),
                b"\n".join([*lines[:number], *lines[number + 1 :]]),
            )
        )
    return data
