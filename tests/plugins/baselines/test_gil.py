"""GIL: the penalty by hand and by autograd, which networks learn, the split, the clusters, and odd batches."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from learner_kit import MULTICLASS, MULTITASK, TinyBackbone, graphs, make, reached, same
from learner_kit import gradients as gradients_of
from torch import nn

from harness import PackedGraphs, RawGraph, UserError
from harness.nn import BatchNorm, environment_mean, subgraph
from harness.nn.edges import reverse_edges
from harness.nn.losses import per_sample_loss
from plugins.backbones.gcn import GCN
from plugins.backbones.gin import GIN
from plugins.baselines.gil import GIL, gradient_variance, normalised_by

PACKED = graphs(12, nodes=(4, 8))
BATCH = PACKED.batch(torch.arange(12))
ENV = torch.tensor([0, 1] * 6)


def linear_risks(env=ENV, classes=3):
    head, z = nn.Linear(5, classes), torch.randn(12, 5)
    y = torch.randint(classes, (12,))
    return head, z, y, environment_mean(per_sample_loss(head(z), y, MULTICLASS), env)


def test_environments_with_the_same_data_have_no_penalty():
    head, z, y = nn.Linear(5, 3), torch.randn(6, 5).repeat(2, 1), torch.randint(3, (6,)).repeat(2)
    risks = environment_mean(per_sample_loss(head(z), y, MULTICLASS), torch.arange(12) // 6)
    assert float(gradient_variance(risks, head.parameters()).detach()) < 1e-12


def test_one_environment_has_no_penalty_but_a_live_zero():
    head, _, _, risks = linear_risks(torch.zeros(12, dtype=torch.int64))
    penalty = gradient_variance(risks, head.parameters())
    assert float(penalty.detach()) == 0.0
    assert penalty.requires_grad
    assert gradient_variance(risks[:0], head.parameters()).requires_grad


def test_two_environments_are_a_quarter_of_the_squared_difference():
    head, _, _, risks = linear_risks()
    one, two = (
        torch.cat([g.flatten() for g in torch.autograd.grad(r, head.parameters(), retain_graph=True)]) for r in risks
    )
    expected = (one - two).square().sum() / 4
    assert torch.allclose(gradient_variance(risks, head.parameters()), expected, rtol=1e-5)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_linear_head_has_the_gradient_of_logistic_regression(count):
    env = torch.arange(12) % count
    head, z, y, risks = linear_risks(env)
    residual = (head(z).softmax(1) - torch.eye(3)[y]).detach().numpy().astype(np.float64)
    rows = np.concatenate([z.numpy(), np.ones((12, 1))], 1)
    found = np.stack(
        [np.mean([np.outer(residual[i], rows[i]) for i in np.flatnonzero(env == e)], 0) for e in range(count)]
    )
    expected = ((found - found.mean(0)) ** 2).sum((1, 2)).mean()
    assert float(gradient_variance(risks, head.parameters()).detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("penalty_params", ["head", "all"])
@pytest.mark.parametrize("backbone", [GIN, GCN])
@pytest.mark.parametrize("term", ["erm", "variance"])
def test_either_term_trains_encoder_mask_and_head(penalty_params, backbone, term):
    learner = make(GIL, penalty_params=penalty_params, backbone=backbone, clusters=2)
    found = gradients_of(learner, learner.loss(BATCH)[term])
    assert all(reached(found, name) for name in ("backbone", "masker", "head"))


def test_the_penalty_is_differentiated_twice():
    learner = make(GIL, clusters=2).double()
    batch = replace(BATCH, x=BATCH.x.double(), cache={})
    env = learner.environments(batch)
    parameter = learner.backbone.linear[1].weight

    def penalty():
        logits = learner.head(learner.embed(batch))
        return gradient_variance(environment_mean(learner.risk(logits, batch), env), learner.head.parameters())

    (found,) = torch.autograd.grad(penalty(), parameter)
    step, at = 1e-6, (0, 1)
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            parameter[at] += sign * step
        values.append(float(penalty().detach()))
        with torch.no_grad():
            parameter[at] -= sign * step
    assert float(found[at]) == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4)


@pytest.mark.parametrize("scorer", ["inner", "mlp"])
@pytest.mark.parametrize("ratio", [0.25, 0.6])
def test_masks_part_each_graphs_edges_and_keep_the_ceiling_of_the_share(scorer, ratio):
    learner = make(GIL, scorer=scorer, ratio=ratio)
    kept, mask = learner.cut(BATCH)
    owner = BATCH.batch[BATCH.edge_index[0]]
    for g in range(12):
        count = int((owner == g).sum())
        assert int(kept[owner == g].sum()) == int(np.ceil(ratio * count))
    assert torch.equal(mask.detach(), kept.float())
    parts = [subgraph(BATCH, chosen).edges for chosen in (kept, ~kept)]
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(BATCH.num_edges))


@pytest.mark.parametrize("scorer", ["inner", "mlp"])
@pytest.mark.parametrize("standardise", [True, False])
def test_an_edge_and_its_reverse_share_one_score(scorer, standardise):
    symmetric = undirected(6)
    scores = make(GIL, scorer=scorer, standardise=standardise).scores(symmetric)
    back = reverse_edges(symmetric)
    assert (back != torch.arange(len(back))).all()
    assert torch.equal(scores, scores[back])
    assert len(scores.unique()) > 6


def undirected(n):
    rng = np.random.default_rng(0)
    made = []
    for _ in range(n):
        size = int(rng.integers(4, 8))
        edges = {(i, (i + 1) % size) for i in range(size)} | {(0, 2)}
        ends = np.array(sorted(edges | {(b, a) for a, b in edges})).T
        made.append(RawGraph(rng.normal(size=(size, 4)).astype(np.float32), ends, 0))
    packed = replace(PackedGraphs.pack(made), y=torch.arange(n) % 3)
    return packed.batch(torch.arange(n))


class NormedEverywhere(TinyBackbone):
    """With norms on messages and on graphs too."""

    name = "normed-everywhere"

    def build(self, node_features, edge_features):
        super().build(node_features, edge_features)
        self.on_messages, self.on_graphs = BatchNorm(node_features.sizes[0]), BatchNorm(self.hidden)

    def forward(self, batch, edge_weight=None):
        source, target = batch.edge_index
        weight = batch.x.new_ones(batch.num_edges, 1) if edge_weight is None else edge_weight.unsqueeze(1)
        message = self.on_messages(batch.x[source] + batch.x[target]) * weight
        h = super().forward(batch, batch.x.index_add(0, target, message), edge_weight)
        summed = h.new_zeros(batch.num_graphs, self.hidden).index_add(0, batch.batch[target], h[target] * weight)
        return h + self.on_graphs(summed)[batch.batch]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("backbone", [GIN, GCN, TinyBackbone, NormedEverywhere])
def test_the_prediction_is_that_of_the_invariant_subgraph_by_itself(backbone, training):
    """In training too, where a norm that saw the other nodes would give other embeddings."""
    learner, twin = (make(GIL, backbone=backbone, ratio=0.3).train(training) for _ in range(2))
    part = subgraph(BATCH, learner.cut(BATCH)[0])
    assert len(part.nodes) < BATCH.num_nodes
    alone = twin.head(twin.pool(twin.backbone(part.batch), part.batch))
    torch.testing.assert_close(learner(BATCH), alone, rtol=1e-4, atol=1e-5)
    for name, value in twin.backbone.state_dict().items():
        torch.testing.assert_close(learner.backbone.state_dict()[name], value, rtol=1e-4, atol=1e-6)


def test_nodes_outside_are_normalised_by_those_inside():
    norm, rows = BatchNorm(3), torch.tensor([1, 2, 5])
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
        norm.bias.fill_(0.5)
    x = torch.randn(7, 3, dtype=torch.float64)
    with normalised_by({7: rows}, nn.Sequential(norm.double())):
        found = norm(x)
    inside = x[rows]
    expected = (x - inside.mean(0)) / (inside.var(0, unbiased=False) + 1e-5).sqrt() * norm.weight + 0.5
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(norm.running_var, 0.9 + 0.1 * inside.var(0))
    torch.testing.assert_close(norm(x).mean(0), torch.full((3,), 0.5, dtype=torch.float64))


def test_soft_parts_weigh_every_edge_and_train_the_mask():
    learner = make(GIL, split="soft").eval()
    weight = learner.scores(BATCH).sigmoid()
    torch.testing.assert_close(learner.embed(BATCH), learner.pool(learner.backbone(BATCH, edge_weight=weight), BATCH))
    left = learner.pool(learner.backbone(BATCH, edge_weight=1 - weight), BATCH)
    torch.testing.assert_close(learner.variant(BATCH), left)
    found = gradients_of(learner, learner.loss(BATCH)["erm"])
    assert all(reached(found, module) for module in ("masker", "backbone", "head"))


def test_dropped_edges_have_a_gradient_as_well():
    learner = make(GIL, ratio=0.5)
    kept, mask = learner.cut(BATCH)
    mask.retain_grad()
    object.__setattr__(learner, "cut", lambda _: (kept, mask))
    learner.risk(learner(BATCH), BATCH).mean().backward()
    assert (mask.grad[kept] != 0).any()
    assert (mask.grad[~kept] != 0).any()


def test_variant_embeddings_leave_modes_statistics_and_gradients_alone():
    learner = make(GIL)
    learner.head.eval()
    before = {name: value.clone() for name, value in learner.state_dict().items()}
    rows = learner.variant(BATCH)
    assert not rows.requires_grad
    assert learner.backbone.training
    assert not learner.head.training
    assert same(before, learner.state_dict())
    learner.eval()
    part = subgraph(BATCH, ~learner.cut(BATCH)[0], without_edges="empty")
    assert torch.allclose(rows, learner.pool(learner.backbone(part.batch), part.batch), atol=1e-5)


def test_clusters_of_an_epoch_are_looked_up_by_position_and_drawn_from_the_runs_generator():
    states = np.random.get_state()[1].copy(), random.getstate(), torch.get_rng_state()
    found = []
    for _ in range(2):
        learner = make(GIL, clusters=3)
        learner.on_epoch_start(PACKED)
        found.append(learner.found)
    assert torch.equal(*found)
    assert len(found[0].unique()) == 3
    some = torch.tensor([7, 2, 9])
    assert torch.equal(learner.environments(PACKED.batch(some)), found[0][some])
    assert np.array_equal(states[0], np.random.get_state()[1])
    assert states[1] == random.getstate()
    assert torch.equal(states[2], torch.get_rng_state())


def test_one_cluster_is_refused_as_it_leaves_no_penalty():
    with pytest.raises(UserError, match="'clusters': expected at least 2, found 1"):
        make(GIL, clusters=1)


def test_clusters_per_batch_ignore_the_other_graphs():
    learner = make(GIL, cluster_per="batch", clusters=2)
    learner.on_epoch_start(PACKED)
    assert learner.found is None
    env = learner.environments(PACKED.batch(torch.arange(4)))
    assert env.shape == (4,)
    assert set(env.tolist()) == {0, 1}


def test_unit_length_clusters_by_direction():
    rows = torch.tensor([[1.0, 0.0], [9.0, 0.1], [0.0, 1.0], [0.1, 9.0]])
    near = make(GIL, clusters=2).cluster(rows)
    assert near[0] == near[1] != near[2]
    far = make(GIL, clusters=3, unit_length=False).cluster(rows)
    assert far[0] == far[2]


def test_environments_of_a_single_graph_count_neither_in_risk_nor_penalty():
    learner = make(GIL)
    learner.found = torch.tensor([0, 1, 0, 1, 2, 0, 1, 0, 1, 0, 1, 0])
    logits = learner(BATCH)
    risk = learner.risk(logits, BATCH)
    two = learner.found < 2
    expected = torch.stack([risk[two & (learner.found == e)].mean() for e in (0, 1)]).mean()
    learner.load_state_dict(make(GIL).state_dict())
    assert torch.allclose(learner.loss(BATCH)["erm"], expected)
    samples = make(GIL, erm_term="samples")
    assert torch.allclose(samples.loss(BATCH)["erm"], risk.mean())


def test_the_weight_grows_to_its_value():
    learner = make(GIL, penalty=2.0, ramp_epochs=10)
    found = []
    for learner.epoch in (0, 4, 9, 30):
        found.append(learner.weight("variance"))
    assert found == [0.2, 1.0, 2.0, 2.0]
    assert make(GIL, penalty=2.0, ramp_epochs=0).weight("variance") == 2.0
    assert learner.weight("erm") == 1.0


def test_graphs_without_any_label_are_in_no_environment():
    packed = graphs(12, task=MULTITASK)
    packed.y[::3] = torch.nan
    learner = make(GIL, task=MULTITASK)
    learner.on_epoch_start(packed)
    assert (learner.environments(packed.batch(torch.arange(12)))[::3] == -1).all()


def test_large_scores_saturate_the_mask_unless_they_are_standardised():
    found = []
    for standardise in (True, False):
        learner = make(GIL, standardise=standardise)
        plain = learner.masker.forward
        learner.masker.forward = lambda batch, plain=plain: 1e3 * plain(batch)
        gradient = gradients_of(learner, learner.risk(learner(BATCH), BATCH).mean())
        found.append(reached(gradient, "masker"))
    assert found == [True, False]
