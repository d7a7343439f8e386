"""Batches bounded by nodes as well as by graphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from harness import PackedGraphs, RawGraph
from harness.graphs.batch import batch_sizes, chunks

NODES = [3, 1, 9, 2, 2, 2, 20, 1, 1, 1, 8]


def graphs(nodes: list[int], bound: int = 0) -> PackedGraphs:
    """Graphs without edges of these sizes."""
    edges = np.zeros((2, 0), dtype=np.int64)
    packed = PackedGraphs.pack([RawGraph(np.ones((count, 1), np.float32), edges, 0) for count in nodes])
    packed.max_batch_nodes = bound
    return packed


@pytest.mark.parametrize(
    ("size", "bound", "at_least", "expected"),
    [
        (4, 0, 1, [4, 4, 3]),
        (4, 10, 1, [2, 1, 3, 1, 3, 1]),
        (2, 10, 1, [2, 1, 2, 1, 1, 2, 2]),
        (99, 1000, 1, [11]),
        (4, 1, 1, [1] * 11),
        (4, 10, 2, [2, 2, 2, 2, 3]),
        (4, 24, 2, [4, 3, 4]),
        (1, 10, 1, [1] * 11),
    ],
)
def test_where_batches_end(size: int, bound: int, at_least: int, expected: list[int]) -> None:
    sizes = batch_sizes(len(NODES), size, torch.tensor(NODES), bound=bound, at_least=at_least)
    assert sizes == expected


@pytest.mark.parametrize("seed", range(20))
def test_no_batch_could_take_one_more(seed: int) -> None:
    """Against the definition, graph by graph."""
    rng = np.random.default_rng(seed)
    nodes, size, bound = rng.integers(1, 30, 200), int(rng.integers(1, 12)), int(rng.integers(1, 90))
    at_least = int(rng.integers(1, min(size, 3) + 1))
    expected: list[list[int]] = [[]]
    for count in nodes.tolist():
        last = expected[-1]
        if last and (len(last) == size or (len(last) >= at_least and sum(last) + count > bound)):
            expected.append([])
        expected[-1].append(count)
    found = batch_sizes(200, size, torch.from_numpy(nodes), bound=bound, at_least=at_least)
    assert found == [len(batch) for batch in expected]


def test_no_graphs_make_no_batch() -> None:
    assert batch_sizes(0, 4) == []
    assert batch_sizes(0, 4, torch.tensor([], dtype=torch.int64), bound=3) == []
    assert list(chunks([])) == []


def test_neighbouring_batches_are_gathered_together_up_to_a_number_of_graphs() -> None:
    assert list(chunks([400, 400, 400, 2000, 1])) == [[400, 400], [400], [2000], [1]]


@pytest.mark.parametrize("order", [None, [10, 0, 6, 6, 3, 1, 2]])
def test_batches_keep_the_bound_and_the_order(order: list[int] | None) -> None:
    packed = graphs(NODES, bound=10)
    ids = torch.arange(11) if order is None else torch.tensor(order)
    batches = list(packed.batches(4, None if order is None else ids))
    assert torch.equal(torch.cat([batch.index for batch in batches]), ids)
    assert all(batch.num_nodes <= 10 or batch.num_graphs == 1 for batch in batches)
    assert [batch.num_graphs for batch in batches] == packed.batch_sizes(4, None if order is None else ids)
    for batch in batches:
        assert batch.ptr.diff().tolist() == [NODES[i] for i in batch.index.tolist()]


def test_the_bound_goes_along_with_the_graphs_and_is_not_stored() -> None:
    packed = graphs(NODES, bound=10)
    kept = (packed.without_labels(), packed.to("cpu"), packed.select(torch.tensor([1, 2])))
    assert [other.max_batch_nodes for other in kept] == [10, 10, 10]
    assert "max_batch_nodes" not in packed.tensors()
    assert PackedGraphs.from_tensors(packed.tensors()).max_batch_nodes == 0
