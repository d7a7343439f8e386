"""Parts of graphs: packed, selected, cut into batches, moved and stored with the graphs they belong to."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from harness import DataError, Declaration, Features, PackedGraphs, RawDataset, RawGraph, Task
from harness.graphs.augment import drop_nodes
from harness.randomness import generator
from harness.stages.prepare import split_tiers


def graph(number, nodes, parts=()):
    """A path whose features tell its number and each node's."""
    x = np.stack([np.full(nodes, number), np.arange(nodes)], 1).astype(np.float32)
    ends = np.array([[i, i + 1] for i in range(nodes - 1)], dtype=np.int64).reshape(-1, 2).T
    return RawGraph(x, ends.copy(), number % 2, parts=parts)


def graphs():
    """Five graphs with 1, 3, 2, 1 and 4 parts; part j of graph i has the number 10 i + j and j + 1 nodes."""
    counts = [1, 3, 2, 1, 4]
    return [graph(i, i + 1, [graph(10 * i + j, j + 1) for j in range(count)]) for i, count in enumerate(counts)]


def numbers(batch):
    """Of each graph of the batch, the numbers of its parts."""
    first = batch.parts.x[batch.parts.ptr[:-1], 0].int()
    return [first[batch.parts_of == i].tolist() for i in range(batch.num_graphs)]


EXPECTED = [[0], [10, 11, 12], [20, 21], [30], [40, 41, 42, 43]]


def test_each_graph_of_a_batch_comes_with_its_parts():
    packed, ids = PackedGraphs.pack(graphs()), torch.tensor([4, 1, 1, 0])
    ways = [packed.batch(ids), packed.select(ids).batch(torch.arange(4)), next(iter(packed.batches(4, ids)))]
    for batch in ways:
        assert numbers(batch) == [EXPECTED[i] for i in ids]
        assert batch.parts.ptr.diff().tolist() == [1, 2, 3, 4, 1, 2, 3, 1, 2, 3, 1]
        assert batch.parts.edge_index.shape[1] == 6 + 3 + 3
    assert [numbers(batch) for batch in packed.batches(2)] == [EXPECTED[:2], EXPECTED[2:4], EXPECTED[4:]]


def test_a_batch_of_parts_is_the_parts_packed_by_themselves():
    packed = PackedGraphs.pack(graphs())
    alone = PackedGraphs.pack([part for graph in graphs()[1:3] for part in graph.parts])
    left, right = packed.batch(torch.tensor([1, 2])).parts, alone.batch(torch.arange(5))
    for name in ("x", "edge_index", "batch", "ptr", "indptr"):
        assert torch.equal(getattr(left, name), getattr(right, name)), name
    assert all(torch.equal(one, other) for one, other in zip(left.outgoing, right.outgoing, strict=True))


def test_tensors_give_the_same_packing_back():
    packed = PackedGraphs.pack(graphs())
    tensors = packed.tensors()
    assert {"part_ptr", "parts/x", "parts/node_ptr"} <= set(tensors)
    for again in (PackedGraphs.from_tensors(tensors), packed.to("cpu"), packed.without_labels()):
        assert numbers(again.batch(torch.arange(5))) == EXPECTED
    assert packed.batch(torch.arange(5)).to("cpu").parts.num_graphs == 11


def test_batches_cut_piecewise_have_the_same_parts(monkeypatch):
    packed = PackedGraphs.pack(graphs())
    whole = [numbers(batch) for batch in packed.batches(2)]
    monkeypatch.setattr("harness.graphs.batch._IN_PLACE", 2)
    assert [numbers(batch) for batch in packed.batches(2)] == whole == [numbers(b) for b in packed.batches([2, 2, 1])]


def test_graphs_without_parts_have_none():
    packed = PackedGraphs.pack([graph(0, 3), graph(1, 2)])
    batch = packed.batch(torch.arange(2))
    assert packed.parts is packed.part_ptr is batch.parts is batch.parts_of is None
    assert not any(name.startswith("part") for name in packed.tensors())


def test_a_changed_batch_keeps_its_parts():
    batch = PackedGraphs.pack(graphs()).batch(torch.arange(5))
    assert numbers(drop_nodes(batch, 0.5, generator(0, "drop"))) == EXPECTED
    assert numbers(batch.keep_edges(torch.zeros(batch.num_edges, dtype=torch.bool))) == EXPECTED


def test_parts_for_some_graphs_only_are_refused():
    with pytest.raises(DataError, match="graph 2: it has no parts, while others have"):
        PackedGraphs.pack([*graphs()[:2], graph(7, 2)])


def test_parts_unlike_the_graphs_are_refused():
    broken = graph(0, 2, [replace(graph(0, 2), x=np.zeros((2, 5), dtype=np.float32))])
    with pytest.raises(DataError, match="parts, counted through all graphs: graph 0"):
        PackedGraphs.pack([broken], Features("numeric", (2,)), Features("none"))


def tiers(groups=("family",)):
    made = [replace(raw, groups={"family": i}) for i, raw in enumerate(graphs())]
    declared = Declaration(Task("binary", 2), Features("numeric", (2,)), groups=groups)
    return split_tiers(declared, RawDataset(dict.fromkeys(("train", "val", "test"), made)))


def test_parts_are_open_and_hold_no_labels():
    found = tiers()
    for split in ("train", "val", "test"):
        names = [name for name in found["open"][split] if name.startswith("parts/")]
        assert sorted(names) == ["parts/edge_index", "parts/edge_ptr", "parts/node_ptr", "parts/x"]
    assert not any("part" in name for split in found["sealed"].values() for name in split)


def test_groupings_are_stored_for_splits_that_are_not_tests():
    found = tiers()
    assert found["open"]["train"]["group/family"].tolist() == [0, 1, 2, 3, 4]
    assert "group/family" not in found["open"]["test"]
    assert not any("group" in name for split in found["sealed"].values() for name in split)
    assert "group/family" not in tiers(groups=())["open"]["train"]
