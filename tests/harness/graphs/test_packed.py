"""Packing, selecting and batching graphs: every way to the same batch, on graphs that are easy to get wrong."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch as PyGBatch
from torch_geometric.data import Data
from torch_geometric.nn import GINConv as PyGGINConv
from torch_geometric.nn import global_add_pool

from harness import Batch, PackedGraphs, RawGraph
from harness.graphs.batch import group_by_source
from harness.graphs.packed import order_edges


def graph(nodes: int, edges: list[tuple[int, int]], y: int = 0, width: int = 3, attr: bool = False) -> RawGraph:
    rng = np.random.default_rng(nodes + 7 * len(edges))
    return RawGraph(
        x=rng.random((nodes, width), dtype=np.float32),
        edge_index=np.array(edges, dtype=np.int64).reshape(-1, 2).T.copy(),
        y=y,
        edge_attr=rng.random((len(edges), 2), dtype=np.float32) if attr else None,
    )


def hard_graphs(attr: bool = False) -> list[RawGraph]:
    """One node, no edges, isolated first, middle and last node, a self loop, a repeated edge, unsorted edges."""
    shapes: list[tuple[int, list[tuple[int, int]]]] = [
        (1, []),
        (4, []),
        (3, [(1, 2), (2, 1)]),
        (5, [(4, 0), (0, 4), (3, 1)]),
        (4, [(2, 0), (0, 1), (1, 2)]),
        (1, [(0, 0)]),
        (3, [(0, 1), (0, 1), (2, 2)]),
        (6, [(5, 4), (3, 2), (1, 0), (0, 5), (2, 5)]),
        (1, []),
    ]
    return [graph(nodes, edges, y=number, attr=attr) for number, (nodes, edges) in enumerate(shapes)]


def packed(attr: bool = False) -> PackedGraphs:
    graphs = PackedGraphs.pack(hard_graphs(attr))
    graphs.y = torch.arange(len(graphs))
    graphs.env = torch.arange(len(graphs)) % 2
    return graphs


def same(first: Batch, second: Batch) -> None:
    for field in dataclasses.fields(Batch):
        if field.name in ("cache", "_outgoing"):
            continue
        one, other = getattr(first, field.name), getattr(second, field.name)
        assert (one is None and other is None) or torch.equal(one, other), field.name
    assert all(torch.equal(one, other) for one, other in zip(first.outgoing, second.outgoing, strict=True))


def expected(ids: list[int], attr: bool = False) -> Batch:
    """The batch made from its definition, one graph after the other."""
    graphs = [hard_graphs(attr)[i] for i in ids]
    starts = np.cumsum([0, *(len(g.x) for g in graphs)])
    edges = np.concatenate([g.edge_index + start for g, start in zip(graphs, starts, strict=False)], axis=1)
    order = sorted(range(edges.shape[1]), key=lambda e: (edges[1, e], edges[0, e]))
    edge_index = torch.from_numpy(edges[:, order])
    owner = [number for number, g in enumerate(graphs) for _ in g.x]
    indptr = [int((edge_index[1] < node).sum()) for node in range(starts[-1] + 1)]
    attributes = [g.edge_attr for g in graphs if g.edge_attr is not None]
    return Batch(
        x=torch.from_numpy(np.concatenate([g.x for g in graphs])),
        edge_index=edge_index,
        batch=torch.tensor(owner),
        ptr=torch.from_numpy(starts),
        indptr=torch.tensor(indptr),
        index=torch.tensor(ids),
        edge_attr=torch.from_numpy(np.concatenate(attributes)[order]) if attr else None,
        y=torch.tensor(ids),
        env=torch.tensor(ids) % 2,
    )


@pytest.mark.parametrize("attr", [False, True])
@pytest.mark.parametrize("ids", [list(range(9)), [8], [1], [0, 1, 8], [3, 0, 5, 2, 7], [6, 6, 1]])
def test_batch_is_the_disjoint_union(ids: list[int], attr: bool) -> None:
    same(packed(attr).batch(torch.tensor(ids)), expected(ids, attr))


@pytest.mark.parametrize("size", [1, 2, 4, 9, 50])
def test_batches_are_the_gathered_batches(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_AHEAD", "_IN_PLACE"):  # so that the graphs do not fit one gather
        monkeypatch.setattr(f"harness.graphs.batch.{name}", 4)
    graphs, order = packed(attr=True), torch.tensor([4, 0, 8, 7, 1, 3, 6])
    in_order = list(graphs.batches(size))
    shuffled = list(graphs.batches(size, order))
    assert sum(batch.num_graphs for batch in in_order) == 9
    for batch, ids in zip(in_order, torch.arange(9).split(size), strict=True):
        same(batch, graphs.batch(ids))
    for batch, ids in zip(shuffled, order.split(size), strict=True):
        same(batch, graphs.batch(ids))


def test_a_large_packing_is_laid_out_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.graphs.batch._IN_PLACE", 4)
    graphs = packed(attr=True)
    for batch, ids in zip(graphs.batches(2), torch.arange(9).split(2), strict=True):
        same(batch, graphs.batch(ids))
        assert batch.x.data_ptr() == graphs.x[graphs.node_ptr[ids[0]]].data_ptr(), "nothing is copied"
    assert graphs._layout is None, "only a layout of all is kept"


def test_batches_of_nothing() -> None:
    assert list(packed().batches(4, torch.tensor([], dtype=torch.int64))) == []


def test_selection_is_a_packing_of_its_own() -> None:
    ids = torch.tensor([7, 2, 5])
    chosen = packed(attr=True).select(ids)
    fresh = PackedGraphs.pack([hard_graphs(attr=True)[i] for i in ids.tolist()])
    fresh.y, fresh.env = ids, ids % 2
    assert {name: value.tolist() for name, value in chosen.tensors().items()} == {
        name: value.tolist() for name, value in fresh.tensors().items()
    }
    same(chosen.batch(torch.tensor([2, 0])), fresh.batch(torch.tensor([2, 0])))


def test_edges_lie_in_the_order_that_edge_fields_are_sorted_by() -> None:
    raw = hard_graphs(attr=True)
    by_graph = np.concatenate([g.edge_attr[order_edges(g.edge_index)] for g in raw if g.edge_attr is not None])
    assert np.array_equal(PackedGraphs.pack(raw).edge_attr, by_graph)


def test_tensors_hold_the_fields_and_nothing_derived() -> None:
    graphs = packed()
    list(graphs.batches(4, torch.arange(9)))
    assert set(graphs.tensors()) == {"x", "edge_index", "node_ptr", "edge_ptr", "y", "env"}
    same(PackedGraphs(**graphs.tensors()).batch(torch.arange(9)), graphs.batch(torch.arange(9)))


def test_without_labels_has_no_labels_in_any_batch() -> None:
    graphs = packed()
    list(graphs.batches(4))
    bare = graphs.without_labels()
    for batch in [*bare.batches(4), bare.batch(torch.tensor([1]))]:
        assert batch.y is None
        assert batch.env is None


def test_outgoing_groups_the_edges_by_source() -> None:
    batch = packed().batch(torch.arange(9))
    by_hand = group_by_source(batch.edge_index, batch.num_nodes)
    assert all(torch.equal(one, other) for one, other in zip(batch.outgoing, by_hand, strict=True))
    order, indptr, target = batch.outgoing
    for node in range(batch.num_nodes):
        edges = order[indptr[node] : indptr[node + 1]]
        assert (batch.edge_index[0, edges] == node).all()
        assert torch.equal(batch.edge_index[1, edges], target[indptr[node] : indptr[node + 1]])


def test_outgoing_follows_replaced_edges() -> None:
    batch = packed().batch(torch.arange(9))
    flipped = batch.edge_index.flip(0)
    flipped = flipped[:, torch.argsort(flipped[1], stable=True)]
    indptr = torch.searchsorted(flipped[1].contiguous(), torch.arange(batch.num_nodes + 1))
    changed = dataclasses.replace(batch, edge_index=flipped, indptr=indptr)
    by_hand = group_by_source(flipped, batch.num_nodes)
    assert all(torch.equal(one, other) for one, other in zip(changed.outgoing, by_hand, strict=True))


def test_keep_edges() -> None:
    batch = packed(attr=True).batch(torch.arange(9))
    keep = torch.arange(batch.num_edges) % 3 != 0
    part = batch.keep_edges(keep)
    assert torch.equal(part.edge_index, batch.edge_index[:, keep])
    assert part.edge_attr is not None
    assert batch.edge_attr is not None
    assert torch.equal(part.edge_attr, batch.edge_attr[keep])
    assert part.indptr.tolist() == [int((part.edge_index[1] < node).sum()) for node in range(batch.num_nodes + 1)]
    assert part.num_nodes == batch.num_nodes
    assert batch.keep_edges(torch.zeros(batch.num_edges, dtype=torch.bool)).num_edges == 0


def test_edges_without_their_pointer_are_refused() -> None:
    batch = packed().batch(torch.arange(9))
    with pytest.raises(ValueError, match="keep_edges"):
        dataclasses.replace(batch, edge_index=batch.edge_index[:, 1:])
    with pytest.raises(ValueError, match="indptr"):
        dataclasses.replace(batch, x=batch.x[1:])


def test_to_keeps_everything() -> None:
    batch = packed(attr=True).batch(torch.arange(9))
    same(batch.to("cpu"), batch)
    same(packed(attr=True).to("cpu").batch(torch.arange(9)), batch)


def test_pyg_modules_work_on_a_batch() -> None:
    graphs = hard_graphs()
    batch = PackedGraphs.pack(graphs).batch(torch.arange(9))
    union = PyGBatch.from_data_list(
        [Data(x=torch.from_numpy(g.x), edge_index=torch.from_numpy(g.edge_index)) for g in graphs]
    )
    conv = PyGGINConv(torch.nn.Linear(3, 5))
    ours = global_add_pool(conv(batch.x, batch.edge_index), batch.batch, size=batch.num_graphs)
    theirs = global_add_pool(conv(union.x, union.edge_index), union.batch, size=union.num_graphs)
    torch.testing.assert_close(ours, theirs)
