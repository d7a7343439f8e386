"""MVGRL: its loss, its embeddings, parity with PyGCL, and the data that breaks other implementations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from encoder_kit import NUMERIC, fitted, small, trees

from harness import DivergedError, Features, PackedGraphs, RawGraph
from harness.errors import DataError, UserError
from harness.graphs import Diffusion, batch_blocks
from harness.nn import local_global_jsd, pool
from harness.randomness import seeded
from plugins.encoders.mvgrl import MVGRL, TwoViews

VIEWS = ["adjacency-ppr", "adjacency-heat", "ppr-heat"]


@pytest.mark.parametrize("views", VIEWS)
def test_cached_embeddings_equal_those_computed_from_the_batch_alone(views):
    graphs = trees(12)
    encoder = small(MVGRL, views=views)
    ((_, module),) = fitted(encoder, graphs)
    cached = encoder.embed(module, graphs)
    with torch.no_grad():
        one_by_one = torch.cat([module(graphs.batch(torch.tensor([i]))) for i in range(12)])
        together = module(graphs.batch(torch.arange(12)))
    torch.testing.assert_close(cached, one_by_one, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(cached, together, rtol=1e-4, atol=1e-5)


def test_embeddings_are_those_of_the_graphs_that_are_handed_over():
    """The cache belongs to one set of graphs; another of the same sizes must not be read from it."""
    first, second = trees(9, seed=0), trees(9, seed=1)
    encoder = small(MVGRL)
    ((_, module),) = fitted(encoder, first)
    encoder.embed(module, first)
    fresh = small(MVGRL)
    torch.testing.assert_close(encoder.embed(module, second), fresh.embed(module, second))


def test_an_isolated_last_node_does_not_shift_its_neighbours_in_the_batch():
    rng = np.random.default_rng(0)
    edges = np.array([[0, 1], [1, 2]], np.int64)
    graphs = [RawGraph(rng.normal(size=(nodes, 3)).astype(np.float32), edges, 0) for nodes in (4, 3, 5, 3)]
    packed = PackedGraphs.pack(graphs)
    encoder = small(MVGRL, batch_size=4)
    ((_, module),) = fitted(encoder, packed)
    module.eval()
    with torch.no_grad():
        one_by_one = torch.cat([module(packed.batch(torch.tensor([i]))) for i in range(4)])
    torch.testing.assert_close(module(packed.batch(torch.arange(4))), one_by_one, rtol=1e-5, atol=1e-6)


def test_the_embedding_is_the_sum_of_both_projected_views():
    batch = trees(5).batch(torch.arange(5))
    module = TwoViews(NUMERIC, 8, 2, 0.0, [None, Diffusion("ppr")]).eval()
    first, second = (module.graph_projection(pool(nodes, batch)) for nodes in module.nodes(batch))
    torch.testing.assert_close(module(batch), first + second)
    assert not torch.allclose(first, second)


def test_identical_views_and_weights_give_equal_halves():
    batch = trees(6).batch(torch.arange(6))
    module = TwoViews(NUMERIC, 8, 2, 0.0, [Diffusion("ppr"), Diffusion("ppr")])
    module.encoders[1].load_state_dict(module.encoders[0].state_dict())
    first, second = module.nodes(batch)
    torch.testing.assert_close(first, second)
    graph, node = module.graph_projection(pool(first, batch)), module.node_projection(first)
    torch.testing.assert_close(module.loss(batch), local_global_jsd(graph, node, batch.batch))


def test_the_order_of_graphs_in_a_batch_does_not_change_the_loss():
    graphs = trees(8)
    module = TwoViews(NUMERIC, 8, 2, 0.0, [None, Diffusion("heat")])
    order = torch.randperm(8, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(module.loss(graphs.batch(torch.arange(8))), module.loss(graphs.batch(order)))


def test_the_loss_reaches_every_parameter():
    batch = trees(8, low=3).batch(torch.arange(8))
    module = TwoViews(NUMERIC, 8, 2, 0.0, [None, Diffusion("ppr")])
    module.loss(batch).backward()
    still = [name for name, parameter in module.named_parameters() if not parameter.grad.abs().sum() > 0]
    # a bias before BatchNorm is taken out by it
    assert [name for name in still if not name.endswith("mlp.0.bias")] == []


@pytest.mark.parametrize("weighted", [True, False])
def test_the_second_view_is_a_gin_on_the_diffusion(weighted):
    """A message-by-message sum over PyGCL's edge list gives the same node vectors."""
    import GCL

    graphs = trees(6, low=4)
    batch = graphs.batch(torch.arange(6))
    module = TwoViews(NUMERIC, 8, 2, 0.0, [None, Diffusion("ppr", weighted=weighted)]).eval()
    (source, target), weights = GCL.augmentors.functional.compute_ppr(batch.edge_index, alpha=0.2, eps=1e-4)
    weights = weights.unsqueeze(1) if weighted else 1.0
    x = batch.x
    for conv in module.encoders[1].convs:
        messages = x.relu()[source] * weights
        x = conv.mlp((1 + conv.eps) * x + torch.zeros_like(x).index_add(0, target, messages))
    torch.testing.assert_close(module.nodes(batch)[1], x, rtol=1e-4, atol=1e-5)


def test_the_loss_equals_pygcls_on_its_own_view():
    import GCL

    batch = trees(6, low=4).batch(torch.arange(6))
    module = TwoViews(NUMERIC, 8, 2, 0.0, [None, Diffusion("ppr", weighted=False)])
    h1, h2 = module.nodes(batch)
    g1, g2 = (module.graph_projection(pool(h, batch)) for h in (h1, h2))
    h1, h2 = module.node_projection(h1), module.node_projection(h2)
    contrast = GCL.models.DualBranchContrast(GCL.losses.JSD(), mode="G2L")
    theirs = contrast(h1=h1, h2=h2, g1=g1, g2=g2, batch=batch.batch)
    torch.testing.assert_close(module.loss(batch), theirs, rtol=1e-4, atol=1e-5)


def test_weights_of_the_diffusion_matter():
    graphs = trees(6, low=4)
    batch = graphs.batch(torch.arange(6))
    module = TwoViews(NUMERIC, 8, 2, 0.0, [None, Diffusion("ppr")])
    batch.cache["blocks"] = [None, batch_blocks(batch, Diffusion("ppr", weighted=False))]
    without = module.nodes(batch)[1]
    batch.cache.clear()
    assert not torch.allclose(without, module.nodes(batch)[1])


def test_training_lowers_the_loss_below_zero():
    graphs = trees(64, low=4)
    encoder = small(MVGRL, snapshots=[1, 30], batch_size=32, lr=5e-3)
    losses = []
    with seeded(0, "encoder"), torch.no_grad():
        for _, module in _with_grad(encoder.fit(graphs)):
            losses.append(module.loss(graphs.batch(torch.arange(64))).item())
    assert losses[1] < losses[0]
    assert losses[1] < 0


def _with_grad(steps):
    while True:
        with torch.enable_grad():
            try:
                item = next(steps)
            except StopIteration:
                return
        yield item


@pytest.mark.parametrize("count", [2, 9, 17])
def test_a_last_batch_of_one_graph_is_left_out(count):
    graphs = trees(count)
    encoder = small(MVGRL, batch_size=8)
    ((_, module),) = fitted(encoder, graphs)
    assert encoder.embed(module, graphs).isfinite().all()


def test_one_graph_cannot_be_contrasted():
    with pytest.raises(DataError, match="needs two; found 1"):
        fitted(small(MVGRL), trees(1))


def test_no_snapshot_is_refused():
    with pytest.raises(UserError, match="snapshots"):
        fitted(small(MVGRL, snapshots=[]), trees(4))


def test_a_loss_that_is_not_finite_is_a_diverged_training():
    graphs = trees(10)
    graphs.x[3] = float("nan")
    with pytest.raises(DivergedError, match="epoch 1 is not finite"):
        fitted(small(MVGRL), graphs)


def test_the_scale_of_the_input_does_not_end_training():
    """A loss of a million is as good as any other: nothing compares it with a constant."""
    graphs = trees(16)
    graphs.x *= 1e6
    ((epoch, _),) = fitted(small(MVGRL, lr=0.0, snapshots=[2]), graphs)
    assert epoch == 2


@pytest.mark.parametrize("views", VIEWS)
def test_graphs_without_edges(views):
    rng = np.random.default_rng(0)
    none = np.zeros((2, 0), np.int64)
    graphs = PackedGraphs.pack([RawGraph(rng.normal(size=(n, 3)).astype(np.float32), none, 0) for n in (1, 1, 2, 4)])
    encoder = small(MVGRL, views=views)
    ((_, module),) = fitted(encoder, graphs)
    assert encoder.embed(module, graphs).isfinite().all()


def test_categorical_features_are_embedded():
    graphs = trees(10)
    graphs.x = torch.randint(0, 4, (graphs.x.size(0), 2), generator=torch.Generator().manual_seed(0))
    encoder = small(MVGRL, features=Features("categorical", (4, 5)))
    ((_, module),) = fitted(encoder, graphs)
    assert encoder.embed(module, graphs).shape == (10, 8)


def test_no_node_features():
    graphs = trees(10)
    graphs.x = torch.empty(graphs.x.size(0), 0)
    encoder = small(MVGRL, features=Features("none"))
    ((_, module),) = fitted(encoder, graphs)
    assert encoder.embed(module, graphs).isfinite().all()
