"""Augmentations stay within their graph, leave no graph empty and take dropped nodes out of the readout."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import PackedGraphs, RawGraph
from harness.graphs import drop_nodes, grow_subgraph, mask_rows, perturb_edges
from harness.graphs.augment import keep_nodes
from harness.nn import pool

ALL = [drop_nodes, grow_subgraph, mask_rows, perturb_edges]


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def raw(nodes, edges, seed=0):
    draw = np.random.default_rng(seed)
    index = np.array(edges, np.int64).reshape(-1, 2).T
    attributes = draw.normal(size=(index.shape[1], 2)).astype(np.float32)
    return RawGraph(draw.normal(size=(nodes, 3)).astype(np.float32), index, 0, edge_attr=attributes)


def batch_of(*graphs):
    packed = PackedGraphs.pack(list(graphs))
    return packed.batch(torch.arange(len(packed)))


def path(nodes):
    return raw(nodes, [(i, i + 1) for i in range(nodes - 1)], seed=nodes)


def check_batch(batch, graphs):
    """The invariants of a batch."""
    assert batch.num_graphs == graphs
    assert (batch.ptr.diff() >= 1).all()
    assert torch.equal(batch.batch, torch.repeat_interleave(torch.arange(graphs), batch.ptr.diff()))
    assert batch.edge_index.shape[0] == 2
    source, target = batch.edge_index
    assert torch.equal(batch.batch[source], batch.batch[target])
    assert torch.equal(batch.indptr.diff(), torch.bincount(target, minlength=batch.num_nodes))
    assert (target.diff() >= 0).all()
    assert batch.edge_attr.shape[0] == batch.num_edges
    assert torch.equal(batch.outgoing.target, target[batch.outgoing.order])


@st.composite
def batches(draw):
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    graphs = []
    for size in sizes:
        node = st.integers(0, size - 1)
        graphs.append(raw(size, draw(st.lists(st.tuples(node, node), max_size=2 * size))))
    return batch_of(*graphs)


@pytest.mark.parametrize("augment", ALL)
@settings(max_examples=40, deadline=None)
@given(batch=batches(), ratio=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), seed=st.integers(0, 99))
def test_a_change_keeps_every_invariant(augment, batch, ratio, seed):
    before = batch.x.clone(), batch.edge_index.clone()
    check_batch(augment(batch, ratio, rng(seed)), batch.num_graphs)
    assert torch.equal(batch.x, before[0])
    assert torch.equal(batch.edge_index, before[1])


@pytest.mark.parametrize("augment", ALL)
def test_one_generator_one_result(augment):
    batch = batch_of(path(20), path(7), path(13))
    first, again, other = (augment(batch, 0.4, rng(seed)) for seed in (5, 5, 6))
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.edge_index, again.edge_index)
    same = first.x.shape == other.x.shape and torch.equal(first.x, other.x)
    assert not (same and torch.equal(first.edge_index, other.edge_index))


@pytest.mark.parametrize("augment", ALL)
def test_no_draw_from_the_global_generator(augment):
    state = torch.get_rng_state()
    augment(batch_of(path(5), path(9)), 0.5, rng())
    assert torch.equal(torch.get_rng_state(), state)


def test_dropped_nodes_leave_the_readout():
    batch = batch_of(path(10), path(30))
    view = drop_nodes(batch, 0.1, rng())
    assert view.ptr.diff().tolist() == [9, 27]
    kept = (batch.x.unsqueeze(0) == view.x.unsqueeze(1)).all(2).any(0)
    torch.testing.assert_close(pool(view.x, view), pool(batch.x * kept.unsqueeze(1), batch))
    assert not torch.allclose(pool(view.x, view), pool(batch.x, batch))


def test_kept_nodes_keep_their_edges_and_features():
    batch = batch_of(raw(4, [(0, 1), (1, 2), (2, 3), (3, 0)]), raw(3, [(0, 2), (2, 1)], seed=1))
    view = keep_nodes(batch, torch.tensor([True, False, True, True, True, False, True]))
    assert view.ptr.tolist() == [0, 3, 5]
    assert sorted(view.edge_index.T.tolist()) == [[1, 2], [2, 0], [3, 4]]
    for column, attribute in zip(view.edge_index.T.tolist(), view.edge_attr, strict=True):
        old = [[0, 2, 3, 4, 6][node] for node in column]
        (position,) = (torch.tensor(old) == batch.edge_index.T).all(1).nonzero().flatten().tolist()
        assert torch.equal(attribute, batch.edge_attr[position])


def test_every_node_is_as_likely_to_be_dropped():
    batch = batch_of(*[path(5)] * 2000)
    view = drop_nodes(batch, 0.2, rng())
    kept = (batch.x.view(2000, 5, 3).unsqueeze(2) == view.x.view(2000, 1, 4, 3)).all(3).any(2)
    share = 1 - kept.float().mean(0)
    assert share.sum().item() == pytest.approx(1)
    assert (share - 0.2).abs().max() < 0.04


def test_a_subgraph_is_connected_and_grows_beyond_the_neighbours_of_its_seed():
    batch = batch_of(*[path(30)] * 20)
    view = grow_subgraph(batch, 0.2, rng())
    assert view.ptr.diff().tolist() == [6] * 20
    assert view.num_edges == 20 * 5  # a connected piece of a path is a path; a star has at most 3 nodes


def test_a_subgraph_stays_in_its_component():
    """Node 0 is isolated: it must never open a way to its own graph's other component."""
    two_parts = raw(7, [(1, 2), (2, 3), (0, 4), (4, 5), (5, 6)])
    for seed in range(30):
        view = grow_subgraph(batch_of(two_parts, path(9)), 0.9, rng(seed))
        size = int(view.ptr[1])
        assert size in (3, 4)
        assert int((view.edge_index[1] < size).sum()) == size - 1


def test_perturbed_edges_are_as_many_and_stay_in_their_graph():
    batch = batch_of(path(21), path(41))
    view = perturb_edges(batch, 0.1, rng())
    owner = view.batch[view.edge_index[0]]
    assert torch.bincount(owner).tolist() == [20, 40]
    before, after = (set(map(tuple, b.edge_index.T.tolist())) for b in (batch, view))
    assert 56 - 2 <= len(before & after) < 60
    assert (view.edge_index[0] != view.edge_index[1]).all()


def test_edges_are_added_uniformly_over_pairs_of_distinct_nodes():
    batch = batch_of(*[raw(3, [(0, 1)])] * 6000)
    view = perturb_edges(batch, 1.0, rng())
    source, target = view.edge_index - view.ptr[view.batch[view.edge_index[0]]]
    counts = torch.bincount(source * 3 + target, minlength=9).view(3, 3)
    assert counts.diagonal().tolist() == [0, 0, 0]
    others = counts[~torch.eye(3, dtype=torch.bool)]
    assert (others - 1000).abs().max() < 4 * 29  # four standard deviations


def test_self_loops_of_a_single_node_have_nowhere_to_go():
    view = perturb_edges(batch_of(raw(1, [(0, 0)]), path(3)), 1.0, rng())
    check_batch(view, 2)
    assert torch.bincount(view.batch[view.edge_index[0]], minlength=2).tolist() == [0, 2]


def test_masked_rows_are_zero_and_no_column_of_the_batch_is():
    batch = batch_of(path(10), path(30))
    view = mask_rows(batch, 0.1, rng())
    zero = (view.x == 0).all(1)
    assert torch.bincount(view.batch[zero]).tolist() == [1, 3]
    assert torch.equal(view.x[~zero], batch.x[~zero])
    assert torch.equal(view.edge_index, batch.edge_index)


def test_a_share_is_not_cut_by_the_binary_form_of_the_ratio():
    assert [(drop_nodes(batch_of(path(n)), 0.1, rng()).num_nodes) for n in (10, 30, 70)] == [9, 27, 63]
