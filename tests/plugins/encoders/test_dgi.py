"""DGI: its loss against the definition and PyGCL, shuffles, and features on which a shuffle changes nothing."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from encoder_kit import NUMERIC, fitted, small, trees

from harness import Features
from harness.errors import DataError
from harness.nn import local_global_jsd
from harness.randomness import generator
from plugins.encoders.dgi import DGI, Summarised, constant_features, shuffle

KINDS = ["bilinear", "dot"]
NEGATIVES = ["within", "across", "in-batch"]


def constant_graphs(count, *, low=4):
    """All nodes alike, as in EQuAD's SPMotif."""
    graphs = trees(count, low=low)
    graphs.x = torch.ones_like(graphs.x)
    return graphs


def make_module(kind="bilinear", readout="mean"):
    torch.manual_seed(0)
    return Summarised(NUMERIC, 8, 2, 0.0, kind, readout)


def sigmoid_of_mean(nodes, batch):
    return torch.stack([nodes[batch.batch == graph].mean(0) for graph in range(batch.num_graphs)]).sigmoid()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("negatives", ["within", "across"])
def test_the_loss_is_the_cross_entropy_of_true_and_corrupted_nodes(negatives, kind):
    batch = trees(6, low=3).batch(torch.arange(6))
    module = make_module(kind)
    found = small(DGI).loss(module, negatives, batch)
    order = shuffle(batch, generator(0, "method"), within=negatives == "within")
    nodes, corrupted = module.nodes(batch.x, batch), module.nodes(batch.x[order], batch)
    summary = sigmoid_of_mean(nodes, batch)
    weight, bias = module.discriminator.weight, module.discriminator.bias
    assert (bias is None) == (kind == "bilinear")
    logits = []
    for h in (nodes, corrupted):
        for node, graph in enumerate(batch.batch.tolist()):
            logits.append(h[node] @ (weight @ summary[graph] + (0.0 if bias is None else bias)))
    target = torch.cat([torch.ones(batch.num_nodes), torch.zeros(batch.num_nodes)])
    expected = F.binary_cross_entropy_with_logits(torch.stack(logits), target)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_pygcls_loss_on_one_graph_is_twice_the_cross_entropy_less_a_constant():
    import GCL

    batch = trees(1, low=8).batch(torch.arange(1))
    module = make_module("dot")
    ours = small(DGI).loss(module, "within", batch)
    order = shuffle(batch, generator(0, "method"), within=True)
    h, corrupted = module.nodes(batch.x, batch), module.nodes(batch.x[order], batch)
    contrast = GCL.models.SingleBranchContrast(GCL.losses.JSD(), mode="G2L")
    theirs = contrast(h=h, g=module.discriminator(h.mean(0, keepdim=True).sigmoid()), hn=corrupted)
    torch.testing.assert_close(2 * ours - 2 * math.log(2), theirs, rtol=1e-4, atol=1e-5)


def test_pygcls_loss_on_a_batch_is_that_of_in_batch_negatives():
    """PyGCL looks at no corrupted node where it is given a batch of graphs."""
    import GCL

    batch = trees(6, low=3).batch(torch.arange(6))
    module = make_module("dot")
    h = module.nodes(batch.x, batch)
    g = module.discriminator(sigmoid_of_mean(h, batch))
    contrast = GCL.models.SingleBranchContrast(GCL.losses.JSD(), mode="G2L")
    theirs = [contrast(h=h, g=g, batch=batch.batch, hn=hn) for hn in (None, torch.randn_like(h))]
    assert torch.equal(*theirs)
    ours = small(DGI).loss(module, "in-batch", batch)
    torch.testing.assert_close(2 * ours - 2 * math.log(2), theirs[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(local_global_jsd(g, h, batch.batch), theirs[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("negatives", NEGATIVES)
def test_a_discriminator_that_tells_nothing_apart_has_a_loss_of_ln_2(negatives):
    batch = trees(6).batch(torch.arange(6))
    module = make_module()
    torch.nn.init.zeros_(module.discriminator.weight)
    assert small(DGI).loss(module, negatives, batch).item() == pytest.approx(math.log(2), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("negatives", NEGATIVES)
def test_the_loss_reaches_every_parameter(negatives, kind):
    batch = trees(8, low=3).batch(torch.arange(8))
    module = make_module(kind)
    small(DGI).loss(module, negatives, batch).backward()
    still = [name for name, parameter in module.named_parameters() if not parameter.grad.abs().sum() > 0]
    # a bias before BatchNorm is taken out by it
    assert [name for name in still if not name.endswith("mlp.0.bias")] == []


def test_a_shuffle_within_graphs_leaves_each_graphs_nodes_to_it():
    batch = trees(30).batch(torch.arange(30))
    rng = torch.Generator().manual_seed(0)
    for _ in range(3):
        order = shuffle(batch, rng, within=True)
        assert torch.equal(order.sort().values, torch.arange(batch.num_nodes))
        assert torch.equal(batch.batch[order], batch.batch)
        assert not torch.equal(order, torch.arange(batch.num_nodes))
    across = shuffle(batch, rng, within=False)
    assert torch.equal(across.sort().values, torch.arange(batch.num_nodes))
    assert not torch.equal(batch.batch[across], batch.batch)


def test_every_order_within_a_graph_is_equally_likely():
    batch = trees(2, low=3, high=4).batch(torch.arange(2))
    rng = torch.Generator().manual_seed(1)
    seen = torch.stack([shuffle(batch, rng, within=True) for _ in range(1200)])
    _, counts = torch.unique(seen, dim=0, return_counts=True)
    assert len(counts) == 36
    expected = 1200 / 36
    assert ((counts - expected) ** 2 / expected).sum().item() < 66.6  # chi-squared, 35 degrees of freedom, p = 0.001


@pytest.mark.parametrize("negatives", ["within", "across"])
def test_on_constant_features_a_shuffle_leaves_the_loss_at_ln_2_or_above(negatives):
    """True and corrupted nodes coincide: softplus(-s) + softplus(s) is at least 2 ln 2, whatever the weights."""
    batch = constant_graphs(6).batch(torch.arange(6))
    for seed in range(20):
        torch.manual_seed(seed)
        module = Summarised(NUMERIC, 8, 2, 0.0, "bilinear", "mean")
        torch.nn.init.normal_(module.discriminator.weight, std=3.0)
        assert small(DGI).loss(module, negatives, batch).item() >= math.log(2) - 1e-6


@pytest.mark.parametrize("negatives", ["within", "across"])
def test_on_constant_features_other_graphs_nodes_are_the_negatives_and_a_flag_says_so(negatives):
    graphs = constant_graphs(64)
    encoder = small(DGI, negatives=negatives, snapshots=[40], batch_size=32, lr=0.01)
    ((_, module),) = fitted(encoder, graphs)
    assert len(encoder.flags) == 1
    assert "shuffling changes nothing" in encoder.flags[0]
    fresh = small(DGI, negatives="in-batch", snapshots=[40], batch_size=32, lr=0.01)
    ((_, other),) = fitted(fresh, graphs)
    assert fresh.flags == []
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in module.state_dict().items())
    with torch.no_grad():
        assert encoder.loss(module, "in-batch", graphs.batch(torch.arange(64))) < math.log(2) - 0.02


def test_a_second_fit_repeats_no_flag():
    encoder, graphs = small(DGI), constant_graphs(8)
    for _ in range(2):
        assert encoder.effective_negatives(graphs) == "in-batch"
    assert len(encoder.flags) == 1


def test_features_that_differ_between_graphs_only():
    """Shuffled within graphs nothing changes; shuffled across the batch it does."""
    graphs = trees(8)
    sizes = graphs.node_ptr.diff()
    graphs.x = torch.repeat_interleave(torch.arange(8.0), sizes).unsqueeze(1).expand(-1, 3).contiguous()
    assert constant_features(graphs, within=True)
    assert not constant_features(graphs, within=False)
    assert small(DGI, negatives="within").effective_negatives(graphs) == "in-batch"
    assert small(DGI, negatives="across").effective_negatives(graphs) == "across"


def test_one_node_that_differs_is_enough_for_a_shuffle():
    graphs = constant_graphs(8)
    graphs.x[-1, 0] = 2.0
    assert not constant_features(graphs, within=True)
    assert small(DGI).effective_negatives(graphs) == "within"


def test_no_features_and_codes():
    graphs = trees(10)
    graphs.x = torch.empty(graphs.x.size(0), 0)
    encoder = small(DGI, features=Features("none"))
    ((_, module),) = fitted(encoder, graphs)
    assert encoder.flags
    assert encoder.embed(module, graphs).isfinite().all()
    graphs.x = torch.arange(2 * len(graphs.x)).reshape(-1, 2) % 4
    encoder = small(DGI, features=Features("categorical", (4, 5)))
    ((_, module),) = fitted(encoder, graphs)
    assert encoder.flags == []
    assert encoder.embed(module, graphs).shape == (10, 8)


@pytest.mark.parametrize("readout", ["mean", "sum"])
def test_the_embedding_is_the_readout_of_the_nodes(readout):
    batch = trees(5).batch(torch.arange(5))
    module = make_module(readout=readout).eval()
    nodes = module.nodes(batch.x, batch)
    expected = torch.stack([getattr(nodes[batch.batch == graph], readout)(0) for graph in range(5)])
    torch.testing.assert_close(module(batch), expected)
    other = make_module(readout="mean")
    torch.testing.assert_close(module.summary(nodes, batch), other.summary(nodes, batch))


def test_training_lowers_the_loss():
    graphs = trees(64, low=6)
    encoder = small(DGI, snapshots=[40], batch_size=32, lr=0.01)
    ((_, module),) = fitted(encoder, graphs)
    with torch.no_grad():
        assert encoder.loss(module, "within", graphs.batch(torch.arange(64))) < math.log(2) - 0.02


def test_one_graph_is_refused():
    with pytest.raises(DataError, match="needs two; found 1"):
        fitted(small(DGI), trees(1))


@pytest.mark.parametrize("negatives", NEGATIVES)
def test_running_statistics_are_those_of_the_graphs_that_are_embedded(negatives):
    graphs = trees(6, low=4)
    batch = graphs.batch(torch.arange(6))
    module, alone = make_module(), make_module()
    small(DGI).loss(module, negatives, batch)
    alone(batch)
    for name, value in alone.state_dict().items():
        assert torch.equal(module.state_dict()[name], value), name
