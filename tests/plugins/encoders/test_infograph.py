"""InfoGraph: its loss, its embedding, parity with PyGCL, the prior, and data that are easy to get wrong."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from encoder_kit import NUMERIC, fitted, small, trees

from harness import Features
from harness.errors import DataError, DivergedError
from harness.nn import pool
from harness.randomness import generator
from plugins.encoders.infograph import InfoGraph, LocalGlobal


def make_module(layers=2, prior=False):
    torch.manual_seed(0)
    return LocalGlobal(NUMERIC, 8, layers, 0.0, prior=prior)


def test_a_nodes_vector_holds_the_outputs_of_all_layers():
    batch = trees(5).batch(torch.arange(5))
    module = make_module(layers=3).eval()
    x, expected = batch.x, []
    source, target = batch.edge_index
    for conv in module.gin.convs:
        x = conv.mlp((1 + conv.eps) * x + torch.zeros_like(x).index_add(0, target, x.relu()[source]))
        expected.append(x)
    torch.testing.assert_close(module.nodes(batch), torch.cat(expected, 1), rtol=1e-5, atol=1e-5)


def test_the_embedding_is_the_sum_of_the_nodes_before_the_projection():
    batch = trees(5).batch(torch.arange(5))
    module = make_module().eval()
    nodes = module.nodes(batch)
    expected = torch.stack([nodes[batch.batch == graph].sum(0) for graph in range(5)])
    torch.testing.assert_close(module(batch), expected)
    before = module(batch)
    torch.nn.init.zeros_(module.graph_projection.shortcut.weight)
    assert torch.equal(module(batch), before)


def test_projections_are_three_layers_with_a_linear_shortcut():
    module = make_module()
    x = torch.randn(4, 16)
    for projection in (module.node_projection, module.graph_projection):
        first, _, second, _, third = projection.deep[0]
        expected = third(second(first(x).relu()).relu()).relu() + projection.shortcut(x)
        torch.testing.assert_close(projection(x), expected)


def test_the_loss_equals_pygcls():
    import GCL

    batch = trees(6, low=3).batch(torch.arange(6))
    module = make_module()
    encoder = small(InfoGraph)
    nodes = module.nodes(batch)
    contrast = GCL.models.SingleBranchContrast(GCL.losses.JSD(), mode="G2L")
    h, g = module.node_projection(nodes), module.graph_projection(pool(nodes, batch))
    theirs = contrast(h=h, g=g, batch=batch.batch)
    ours = encoder._loss(module, batch)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    parameters = list(module.parameters())
    pairs = zip(torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters), strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_the_order_of_graphs_in_a_batch_does_not_change_the_loss():
    graphs = trees(8)
    module, encoder = make_module(), small(InfoGraph)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(3))
    one, other = (encoder._loss(module, graphs.batch(ids)) for ids in (torch.arange(8), order))
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("prior", [0.0, 0.1])
def test_the_loss_reaches_every_parameter(prior):
    batch = trees(8, low=3).batch(torch.arange(8))
    module = make_module(prior=prior > 0)
    small(InfoGraph, prior=prior)._loss(module, batch).backward()
    still = [name for name, parameter in module.named_parameters() if not parameter.grad.abs().sum() > 0]
    # a bias before BatchNorm is taken out by it
    assert [name for name in still if not name.endswith("mlp.0.bias")] == []


def test_the_prior_is_the_discriminators_cross_entropy():
    module = make_module(prior=True)
    noise, graphs = torch.rand(5, 16), torch.randn(5, 16)
    d_noise, d_graphs = module.discriminator(noise).sigmoid(), module.discriminator(graphs).sigmoid()
    expected = -d_noise.log().mean() - (1 - d_graphs).log().mean()
    for adversarial in (False, True):
        torch.testing.assert_close(module.prior(noise, graphs, adversarial=adversarial), expected)
    torch.nn.init.zeros_(module.discriminator[-1].weight)
    torch.nn.init.zeros_(module.discriminator[-1].bias)
    assert module.prior(noise, graphs, adversarial=True).item() == pytest.approx(2 * math.log(2))


def test_the_encoder_works_against_the_discriminator_unless_told_otherwise():
    module = make_module(prior=True)
    noise, graphs = torch.rand(5, 16), torch.randn(5, 16, requires_grad=True)
    parameters = list(module.discriminator.parameters())
    found = {}
    for adversarial in (False, True):
        loss = module.prior(noise, graphs, adversarial=adversarial)
        found[adversarial] = torch.autograd.grad(loss, [graphs, *parameters])
    torch.testing.assert_close(found[True][0], -found[False][0])
    for one, other in zip(found[True][1:], found[False][1:], strict=True):
        torch.testing.assert_close(one, other)


def test_the_priors_weight_and_noise():
    batch = trees(6, low=3).batch(torch.arange(6))
    module = make_module(prior=True)
    plain = small(InfoGraph)._loss(module, batch)
    encoder = small(InfoGraph, prior=0.3)
    noise = torch.rand(6, 16, generator=generator(0, "method"))
    expected = plain + 0.3 * module.prior(noise, module(batch), adversarial=True)
    torch.testing.assert_close(encoder._loss(module, batch), expected)


def test_without_a_prior_there_is_no_discriminator():
    graphs = trees(9)
    ((_, module),) = fitted(small(InfoGraph), graphs)
    assert not any(name.startswith("discriminator") for name, _ in module.named_parameters())


def test_training_lowers_the_loss_below_zero():
    graphs = trees(64, low=4)
    encoder = small(InfoGraph, snapshots=[25], batch_size=32, lr=5e-3)
    ((_, module),) = fitted(encoder, graphs)
    with torch.no_grad():
        assert encoder._loss(module, graphs.batch(torch.arange(64))) < -0.1


def test_one_graph_cannot_be_contrasted():
    with pytest.raises(DataError, match="needs two; found 1"):
        fitted(small(InfoGraph), trees(1))


def test_a_loss_that_is_not_finite_is_a_diverged_training():
    graphs = trees(10)
    graphs.x[3] = float("nan")
    with pytest.raises(DivergedError, match="epoch 1 is not finite"):
        fitted(small(InfoGraph), graphs)


@pytest.mark.parametrize(
    ("features", "x"),
    [
        (Features("none"), lambda n: torch.empty(n, 0)),
        (Features("categorical", (4, 5)), lambda n: torch.arange(2 * n).reshape(n, 2) % 4),
    ],
    ids=["none", "categorical"],
)
def test_other_features(features, x):
    graphs = trees(10)
    graphs.x = x(graphs.x.size(0))
    encoder = small(InfoGraph, features=features)
    ((_, module),) = fitted(encoder, graphs)
    assert encoder.embed(module, graphs).shape == (10, 16)


def test_large_scores_of_the_prior_stay_finite():
    module = make_module(prior=True)
    value = module.prior(torch.rand(4, 16), torch.full((4, 16), 1e6), adversarial=True)
    assert value.isfinite()
    assert F.softplus(module.discriminator(torch.full((4, 16), 1e6))).isfinite().all()
