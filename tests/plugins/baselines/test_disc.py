"""DisC: importance, the generalised cross-entropy's forms, which branch each loss trains, masks and swap."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from learner_kit import MULTICLASS, graphs, make, raw_graphs, reached, repeated, same, train
from learner_kit import gradients as gradients_of

from harness import Features, PackedGraphs
from harness.nn import generalized_cross_entropy
from harness.training.bases import LearnerInfo, ModelSpec
from plugins.backbones.gcn import GCN
from plugins.backbones.gin import GIN
from plugins.baselines._debiased import amplified, relative_difficulty
from plugins.baselines.disc import DisC, Residual

PACKED = graphs(12, nodes=(4, 8))
BATCH = PACKED.batch(torch.arange(12))


def test_importance_is_the_bias_branchs_share_of_the_losses():
    causal = torch.tensor([0.7, 1e-6, 2.0, 0.0], requires_grad=True)
    biased = torch.tensor([0.7, 50.0, 0.0, 0.0], requires_grad=True)
    found = relative_difficulty(causal, biased)
    assert torch.allclose(found, torch.tensor([0.5, 1.0, 0.0, 0.0]), atol=1e-6)
    assert not found.requires_grad


def test_one_weight_for_a_batch_comes_from_its_means():
    causal, biased = torch.tensor([1.0, 3.0]), torch.tensor([2.0, 4.0])
    assert torch.allclose(make(DisC).importance(causal, biased), torch.tensor([2 / 3, 4 / 7]))
    assert torch.allclose(make(DisC, weights="batch").importance(causal, biased), torch.tensor([0.6, 0.6]))


def gce_gradient(logits, y, q, form):
    logits = logits.clone().requires_grad_()
    amplified(logits, y, q, form).sum().backward()
    return logits.grad


@pytest.mark.parametrize("q", [0.3, 0.7, 1.0])
def test_the_scaled_form_has_q_times_the_papers_gradient(q):
    logits, y = torch.randn(8, 3, dtype=torch.float64) * 3, torch.randint(3, (8,))
    assert torch.equal(amplified(logits, y, q, "paper"), generalized_cross_entropy(logits, y, q))
    assert torch.allclose(gce_gradient(logits, y, q, "scaled"), q * gce_gradient(logits, y, q, "paper"), rtol=1e-10)


def test_as_q_vanishes_the_scaled_form_does_and_the_papers_is_cross_entropy():
    logits, y = torch.randn(8, 3, dtype=torch.float64), torch.randint(3, (8,))
    entropy = F.cross_entropy(logits, y, reduction="none")
    assert torch.allclose(amplified(logits, y, 1e-7, "paper"), entropy, atol=1e-5)
    assert float(amplified(logits, y, 1e-7, "scaled").max()) < 1e-5


def test_confident_graphs_weigh_more_in_the_bias_branch():
    p = torch.tensor([0.9, 0.1], dtype=torch.float64)
    logits = torch.stack([p.log(), (1 - p).log()], 1)
    y = torch.zeros(2, dtype=torch.int64)
    entropy = logits.clone().requires_grad_()
    F.cross_entropy(entropy, y, reduction="sum").backward()
    ratio = (gce_gradient(logits, y, 0.7, "paper") / entropy.grad)[:, 0]
    assert ratio.tolist() == pytest.approx([0.929, 0.200], abs=1e-3)


@pytest.mark.parametrize(("term", "own", "other"), [("causal", "", "bias_"), ("bias", "bias_", "")])
def test_each_loss_trains_its_own_branch_and_both_train_the_masks(term, own, other):
    learner = make(DisC)
    found = gradients_of(learner, learner.loss(BATCH)[term])
    for part in ("backbone", "head"):
        assert reached(found, own + part)
        assert not reached(found, other + part)
    masks = {name.split(".")[1] for name, value in found.items() if value > 0 and name.startswith("masks.")}
    assert masks == {"front", "convs", "edge", "node"}


def test_the_swap_trains_both_branches():
    learner = make(DisC)
    found = gradients_of(learner, learner.loss(BATCH)["swap"])
    assert all(reached(found, name) for name in ("backbone", "head", "bias_backbone", "bias_head", "masks"))


@pytest.mark.parametrize("bias", [1.0, 0.5])
def test_without_a_permutation_the_swapped_loss_is_the_loss(bias):
    learner = make(DisC, bias=bias).eval()
    z_c, z_b = learner.branches(BATCH)
    losses = [learner.risk(p(z_c, z_b), BATCH) for p in (learner.predict_causal, learner.predict_bias)]
    swapped = learner.swapped(BATCH, z_c, z_b, learner.importance(*losses), torch.arange(12))
    terms = learner.loss(BATCH)
    assert torch.allclose(swapped, terms["causal"] + bias * terms["bias"])


def test_a_swap_takes_embedding_and_label_of_the_other_graph():
    learner, other = make(DisC).eval(), torch.arange(12).roll(1)
    z_c, z_b = learner.branches(BATCH)
    weight = torch.rand(12)
    causal = F.cross_entropy(learner.head(torch.cat([z_c, z_b[other]], 1)), BATCH.y, reduction="none")
    biased = generalized_cross_entropy(learner.bias_head(torch.cat([z_c, z_b[other]], 1)), BATCH.y[other], 0.7)
    found = learner.swapped(BATCH, z_c, z_b, weight, other)
    assert torch.allclose(found, (weight * causal).mean() + biased.mean())


def test_the_swap_has_no_effect_before_its_start():
    def trained(epochs, swap):
        return train(make(DisC, swap=swap, swap_start=0.5), PACKED, epochs=epochs)

    assert same(trained(1, 1.0), trained(1, 15.0))  # the kit announces two epochs
    assert not same(trained(2, 1.0), trained(2, 15.0))


def test_the_permutation_is_the_runs_own():
    before = torch.get_rng_state()
    one, two = (make(DisC).loss(BATCH)["swap"] for _ in range(2))
    assert torch.equal(one, two)
    assert torch.equal(before, torch.get_rng_state())
    learner = make(DisC)
    learner.rng.manual_seed(9)
    assert not torch.equal(one, learner.loss(BATCH)["swap"])


def calls_of(learner, *names):
    """What each network is called with."""
    seen = {name: [] for name in names}
    for name in names:
        getattr(learner, name).register_forward_pre_hook(
            lambda _, args, kwargs, name=name: seen[name].append({"batch": args[0], **kwargs}), with_kwargs=True
        )
    return seen


def test_masks_of_the_branches_sum_to_one():
    learner = make(DisC)
    seen = calls_of(learner, "backbone", "bias_backbone")
    learner.branches(BATCH)
    (causal,), (bias,) = seen["backbone"], seen["bias_backbone"]
    assert torch.allclose(causal["edge_weight"] + bias["edge_weight"], torch.ones(BATCH.num_edges))
    assert torch.allclose(causal["x"] + bias["x"], BATCH.x, atol=1e-6)
    low, high = causal["edge_weight"].detach().aminmax()
    assert 0 < low < high < 1
    share = causal["x"] / BATCH.x
    assert torch.allclose(share, share[:, :1].expand_as(share), atol=1e-4)  # one mask for all features of a node


def test_prediction_reads_the_graphs_own_bias_embedding():
    learner = make(DisC).eval()
    z_c, z_b = learner.branches(BATCH)
    assert torch.equal(learner(BATCH), learner.head(torch.cat([z_c, z_b], 1)))


def test_embeddings_do_not_grow_with_the_number_of_nodes():
    """By the suite's readout, a sum, they would, and the bias branch's loss has no gradient at large logits."""
    larger = PackedGraphs.pack([repeated(graph, 50) for graph in raw_graphs(PACKED)]).batch(torch.arange(12))
    learner, sums = make(DisC).eval(), make(DisC, pooling="suite").eval()
    for small, large in zip(learner.branches(BATCH), learner.branches(larger), strict=True):
        assert torch.allclose(small, large, atol=1e-5)
    for small, large in zip(sums.branches(BATCH), sums.branches(larger), strict=True):
        assert torch.allclose(50 * small, large, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["categorical", "none"])
@pytest.mark.parametrize("backbone", [GIN, GCN])
def test_features_that_are_no_numbers_are_embedded_before_they_are_masked(kind, backbone):
    codes = torch.randint(3, (BATCH.num_nodes, 2)) if kind == "categorical" else torch.zeros(BATCH.num_nodes, 0)
    features = Features("categorical", (3, 3)) if kind == "categorical" else Features("none")
    batch = replace(BATCH, x=codes, cache={})
    learner = DisC()
    learner.setup(
        LearnerInfo(MULTICLASS, features, Features("none"), epochs=2), ModelSpec(backbone, {"hidden": 16}), seed=0
    )
    seen = calls_of(learner, "backbone", "bias_backbone")
    found = gradients_of(learner, learner.loss(batch)["causal"])
    assert reached(found, "front")
    assert not reached(found, "bias_front")
    (causal,), (bias,) = seen["backbone"], seen["bias_backbone"]
    assert causal["x"].shape == (BATCH.num_nodes, 16)
    share = causal["x"] / learner.front(codes)
    assert torch.allclose(share + bias["x"] / learner.bias_front(codes), torch.ones_like(share), atol=1e-3)


def test_the_authors_layers_of_the_masks_by_a_loop():
    layer = Residual(4, 4).double()
    h = torch.randn(BATCH.num_nodes, 4, dtype=torch.float64)
    source, target = BATCH.edge_index
    means = torch.zeros_like(h)
    for node in range(BATCH.num_nodes):
        if (target == node).any():
            means[node] = h[source[target == node]].mean(0)
    z = layer.linear(means)
    z = (z - z.mean(0)) / (z.var(0, unbiased=False) + layer.norm.eps).sqrt()
    assert torch.allclose(layer(h, BATCH), h + z.relu(), atol=1e-10)
