"""CAL: attention, the weighted convolution, distance from uniform, pairings, and which loss trains what."""

import pytest
import torch
import torch.nn.functional as F
from learner_kit import BINARY, MULTICLASS, graphs, make, reached
from learner_kit import gradients as gradients_of

from plugins.baselines.cal import CAL, from_uniform

PACKED = graphs(12, nodes=(4, 8))
BATCH = PACKED.batch(torch.arange(12))
CONTEXT = ("norms.0", "convs.0", "context_head")
OBJECT = ("norms.1", "convs.1", "head")


def touched(found, prefix):
    return any(value > 0 for name, value in found.items() if name.startswith(prefix + "."))


def test_attention_sums_to_one():
    _, nodes, edges = make(CAL).attention(BATCH)
    assert nodes.shape == (BATCH.num_nodes, 2)
    assert edges.shape == (BATCH.num_edges, 2)
    assert torch.allclose(nodes.sum(1), torch.ones(BATCH.num_nodes))
    assert torch.allclose(edges.sum(1), torch.ones(BATCH.num_edges))


def test_attention_of_weight_zero_gives_both_branches_the_same_input():
    learner = make(CAL)
    with torch.no_grad():
        for layer in (learner.node_attention, learner.edge_attention):
            layer.weight.zero_()
            layer.bias.zero_()
    h, nodes, edges = learner.attention(BATCH)
    assert torch.equal(nodes, torch.full_like(nodes, 0.5))
    assert torch.equal(edges, torch.full_like(edges, 0.5))
    seen = []
    for norm in learner.norms:
        norm.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    learner.predictions(BATCH)
    assert torch.equal(seen[0], seen[1])
    assert torch.allclose(seen[0], h / 2)


def test_a_branch_is_a_convolution_with_weighted_degrees_and_loops_of_weight_one():
    """A dense matrix in float64: D^-1/2 (A + I) D^-1/2 with A_ts the attention of edge s -> t, D_s its sum over t."""
    learner = make(CAL).double()
    batch = PACKED.batch(torch.arange(12))
    batch.x = batch.x.double()
    h, nodes, edges = learner.attention(batch)
    for which in range(2):
        dense = torch.eye(batch.num_nodes, dtype=torch.float64)
        dense[batch.edge_index[1], batch.edge_index[0]] = edges[:, which]
        scale = dense.sum(0).rsqrt()
        dense = scale.unsqueeze(1) * dense * scale
        x = h * nodes[:, which].unsqueeze(1)
        x = (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt()
        conv = learner.convs[which]
        x = (dense @ x @ conv.lin.weight.T + conv.bias).relu()
        expected = torch.stack([x[batch.batch == graph].sum(0) for graph in range(12)])
        assert torch.allclose(learner.branch(which, h, nodes, edges, batch), expected, atol=1e-9)


def test_edges_without_attention_leave_the_loop():
    learner = make(CAL)
    h, nodes, edges = learner.attention(BATCH)
    bare = BATCH.keep_edges(torch.zeros(BATCH.num_edges, dtype=torch.bool))
    expected = learner.branch(1, h, nodes, edges[:0], bare)
    assert torch.allclose(learner.branch(1, h, nodes, torch.zeros_like(edges), BATCH), expected, atol=1e-6)
    assert not torch.allclose(learner.branch(1, h, nodes, edges, BATCH), expected, atol=1e-3)


def test_distance_from_uniform():
    p = torch.tensor([[1 / 3, 1 / 3, 1 / 3], [0.5, 0.25, 0.25]], dtype=torch.float64)
    found = from_uniform(p.log() + 5.0)
    assert found[0].item() == pytest.approx(0.0, abs=1e-12)
    assert found[1].item() == pytest.approx(0.05663, abs=1e-5)
    uniform = torch.distributions.Categorical(logits=torch.zeros(8, 5, dtype=torch.float64))
    logits = torch.randn(8, 5, dtype=torch.float64)
    expected = torch.distributions.kl_divergence(uniform, torch.distributions.Categorical(logits=logits))
    assert torch.allclose(from_uniform(logits), expected)


def test_the_terms_are_those_of_the_three_readouts():
    learner = make(CAL)
    learner.rng.manual_seed(3)
    terms = learner.loss(BATCH)
    learner.rng.manual_seed(3)
    logits = learner.predictions(BATCH)
    uniform = torch.full((12, 3), 1 / 3)
    assert torch.allclose(terms["object"], F.cross_entropy(logits["object"], BATCH.y))
    kl = F.kl_div(logits["context"].log_softmax(1), uniform, reduction="batchmean")
    assert torch.allclose(terms["context"], kl, atol=1e-6)
    assert torch.allclose(terms["joint"], F.cross_entropy(logits["joint"], BATCH.y))
    expected = 0.5 * terms["context"] + terms["object"] + 0.5 * terms["joint"]
    assert torch.allclose(learner.total(terms), expected)
    assert [learner.weight(name) for name in ("context", "object", "joint")] == [0.5, 1.0, 0.5]


@pytest.mark.parametrize("combine", ["add", "concat"])
def test_the_context_is_anothers_and_the_label_the_objects(combine):
    learner = make(CAL, combine=combine)
    order = torch.arange(12).roll(1)
    object.__setattr__(learner, "pairing", lambda _: order)
    parts = learner.attention(BATCH)
    context, obj = (learner.branch(which, *parts, BATCH) for which in range(2))
    both = context[order] + obj if combine == "add" else torch.cat([context[order], obj], 1)
    expected = F.cross_entropy(learner.joint_head(both), BATCH.y)
    assert torch.allclose(learner.loss(BATCH)["joint"], expected, atol=1e-6)


def test_pairings_are_drawn_in_training_only_and_from_the_runs_generator():
    learner, twin = make(CAL), make(CAL)
    torch.rand(3)
    drawn = [learner.pairing(12) for _ in range(3)]
    assert all(torch.equal(order.sort().values, torch.arange(12)) for order in drawn)
    assert not torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], twin.pairing(12))
    learner.eval()
    assert torch.equal(learner.pairing(12), torch.arange(12))


def test_prediction_is_the_object_branchs():
    learner = make(CAL).eval()
    assert torch.equal(learner(BATCH), learner.predictions(BATCH)["object"])


def test_each_loss_trains_its_branch_and_the_shared_trunk():
    learner = make(CAL)
    context = gradients_of(learner, learner.loss(BATCH)["context"])
    assert all(touched(context, name) for name in CONTEXT)
    assert not any(touched(context, name) for name in (*OBJECT, "joint_head"))
    found = gradients_of(learner, learner.loss(BATCH)["object"])
    assert all(touched(found, name) for name in OBJECT)
    assert not any(touched(found, name) for name in (*CONTEXT, "joint_head"))
    joint = gradients_of(learner, learner.loss(BATCH)["joint"])
    assert all(touched(joint, name) for name in ("norms.0", "convs.0", "norms.1", "convs.1", "joint_head"))
    assert not touched(joint, "context_head")
    assert not touched(joint, "head")
    for gradients in (context, found, joint):
        assert all(reached(gradients, name) for name in ("backbone", "node_attention", "edge_attention"))


@pytest.mark.parametrize("combine", ["add", "concat"])
def test_heads_with_batchnorm(combine):
    learner = make(CAL, heads="batchnorm", combine=combine)
    kinds = [type(part).__name__ for part in learner.joint_head]
    assert kinds == ["BatchNorm", "Linear", "ReLU", "BatchNorm", "Linear"]
    assert learner.joint_head[0].num_features == (12 if combine == "concat" else 6)
    found = gradients_of(learner, learner.total(learner.loss(BATCH)))
    assert all(reached(found, name) for name in ("head", "context_head", "joint_head"))


@pytest.mark.parametrize("task", [BINARY, MULTICLASS], ids=lambda task: task.kind)
@pytest.mark.parametrize("heads", ["suite", "batchnorm"])
def test_a_batch_of_one_graph_is_finite(task, heads):
    learner = make(CAL, task=task, heads=heads)
    batch = graphs(1, task=task).batch(torch.arange(1))
    learner.total(learner.loss(batch)).backward()
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in learner.parameters())
