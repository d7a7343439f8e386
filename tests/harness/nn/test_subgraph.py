"""Edge splits and subgraphs: exact counts, ties, empty graphs, valid batches."""

import numpy as np
import pytest
import torch

from harness import PackedGraphs, RawGraph
from harness.nn import pool, subgraph, top_k_edges


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def pack(*edge_lists):
    """One batch of graphs given as (number of nodes, [(source, target), …])."""
    raw = [
        RawGraph(np.arange(n, dtype=np.float32)[:, None], np.array(edges, dtype=np.int64).reshape(-1, 2).T, 0)
        for n, edges in edge_lists
    ]
    packed = PackedGraphs.pack(raw)
    return packed.batch(torch.arange(len(raw)))


def chain(edges):
    return edges + 1, [(i, i + 1) for i in range(edges)]


@pytest.mark.parametrize("edges", [100, 180, 200, 220, 340])
def test_the_number_of_edges_does_not_overshoot_by_rounding(edges):
    batch = pack(chain(edges))
    assert int(top_k_edges(torch.rand(edges), batch, 0.55).sum()) == edges * 55 // 100


@pytest.mark.parametrize(("edges", "ratio", "kept"), [(3, 0.25, 1), (3, 1.0, 3), (1, 0.1, 1), (5, 0.5, 3), (0, 0.5, 0)])
def test_the_number_of_edges_is_rounded_up_and_clipped(edges, ratio, kept):
    batch = pack(chain(edges), chain(4))
    mask = top_k_edges(torch.rand(edges + 4), batch, ratio)
    assert int(mask[:edges].sum()) == kept


@pytest.mark.parametrize(
    ("edges", "ratio", "kept"),
    [(3, 0.25, 1), (3, 1.0, 3), (7, 0.25, 1), (9, 0.25, 2), (100, 0.29, 29), (5, 0.6, 3), (1, 0.1, 1), (0, 0.5, 0)],
)
def test_the_number_of_edges_may_be_rounded_down(edges, ratio, kept):
    batch = pack(chain(edges), chain(4))
    mask = top_k_edges(torch.rand(edges + 4), batch, ratio, rounding="down")
    assert int(mask[:edges].sum()) == kept


def test_the_highest_scores_of_each_graph_are_kept():
    batch = pack(chain(3), chain(3))
    mask = top_k_edges(torch.tensor([0.1, 0.9, 0.5, -7.0, -9.0, -8.0]), batch, 0.34)
    assert mask.tolist() == [False, True, True, True, False, True]


@pytest.mark.parametrize("edges", [12, 36, 200])
def test_ties_favour_no_part_of_a_graph(edges):
    """In generated graphs the base's edges come first and the motif's last."""
    kept = top_k_edges(torch.zeros(2 * edges), pack(chain(edges), chain(edges)), 0.25)
    first, again = kept.reshape(2, edges)
    assert first.equal(again)
    assert int(first.sum()) == edges // 4
    quarters = first.reshape(4, -1).sum(1)
    assert int(quarters.max() - quarters.min()) <= 1


def test_ties_do_not_depend_on_the_other_graphs():
    alone = top_k_edges(torch.zeros(9), pack(chain(9)), 0.5)
    assert top_k_edges(torch.zeros(14), pack(chain(5), chain(9)), 0.5)[5:].equal(alone)


def test_an_outlier_score_does_not_disturb_other_graphs():
    batch = pack(*[chain(4)] * 300)
    scores = torch.rand(1200)
    expected = top_k_edges(scores, batch, 0.25)
    assert expected.reshape(300, 4).long().argmax(1).equal(scores.reshape(300, 4).argmax(1))
    scores[expected.nonzero()[0]] = 1e4
    assert top_k_edges(scores, batch, 0.25).equal(expected)


def test_a_subgraph_holds_the_kept_edges_and_their_nodes():
    batch = pack((4, [(0, 1), (1, 2), (2, 3)]), (3, [(0, 2), (1, 2)]))
    part = subgraph(batch, torch.tensor([False, False, True, True, False]))
    assert part.nodes.tolist() == [2, 3, 4, 6]
    assert part.edges.tolist() == [2, 3]
    assert part.batch.edge_index.tolist() == [[0, 2], [1, 3]]
    assert part.batch.batch.tolist() == [0, 0, 1, 1]
    assert part.batch.ptr.tolist() == [0, 2, 4]
    assert part.batch.x.squeeze(1).tolist() == [2.0, 3.0, 0.0, 2.0]


def test_a_subgraph_is_a_valid_batch():
    batch = pack(*[(9, [(i, j) for i in range(9) for j in range(9) if (3 * i + j) % 4 == 0]) for _ in range(5)])
    part = subgraph(batch, torch.rand(batch.num_edges) < 0.3).batch
    target = part.edge_index[1]
    assert bool((target[1:] >= target[:-1]).all())
    assert part.indptr.diff().equal(torch.bincount(target, minlength=part.num_nodes))
    assert part.ptr.diff().equal(torch.bincount(part.batch, minlength=5))


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_graph_without_kept_edges_keeps_its_row(empty):
    batch = pack(chain(2), chain(2), chain(2))
    mask = (batch.batch[batch.edge_index[0]] != empty) & (torch.arange(6) % 2 == 0)
    nodes = subgraph(batch, mask, without_edges="all-nodes")
    assert nodes.batch.ptr.diff().tolist() == [3 if g == empty else 2 for g in range(3)]
    none = subgraph(batch, mask, without_edges="empty")
    assert none.batch.ptr.diff().tolist() == [0 if g == empty else 2 for g in range(3)]
    assert none.present.tolist() == [g != empty for g in range(3)]
    pooled = pool(none.batch.x + 1, none.batch, "mean")
    assert pooled.shape == (3, 1)
    assert pooled[empty].item() == 0.0


def test_all_and_no_edges():
    batch = pack(chain(2), (1, []))
    whole = subgraph(batch, torch.ones(2, dtype=torch.bool))
    assert whole.batch.edge_index.equal(batch.edge_index)
    assert whole.nodes.tolist() == [0, 1, 2, 3]
    nothing = subgraph(batch, torch.zeros(2, dtype=torch.bool), without_edges="empty")
    assert nothing.batch.num_nodes == 0
    assert nothing.batch.ptr.tolist() == [0, 0, 0]
    assert nothing.batch.indptr.tolist() == [0]


def test_labels_and_edge_features_travel_along():
    batch = pack(chain(2), chain(2))
    batch.y, batch.edge_attr = torch.tensor([3, 4]), torch.arange(4.0).unsqueeze(1)
    batch.cache["of the whole"] = object()
    part = subgraph(batch, torch.tensor([True, False, False, True])).batch
    assert part.y.tolist() == [3, 4]
    assert part.edge_attr.squeeze(1).tolist() == [0.0, 3.0]
    assert part.cache == {}
