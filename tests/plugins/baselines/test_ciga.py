"""CIGA: the split, the terms, which module each term trains, and graphs that leave nothing over."""

import numpy as np
import pytest
import torch
from learner_kit import BINARY, graphs, make, reached
from learner_kit import gradients as gradients_of

from harness import PackedGraphs, RawGraph
from harness.nn import subgraph
from plugins.backbones.gcn import GCN
from plugins.backbones.gin import GIN
from plugins.baselines.ciga import CIGA, hinge

PACKED = graphs(10, nodes=(4, 8))
BATCH = PACKED.batch(torch.arange(10))
TERMS = {"v1": ["erm", "contrast"], "v2": ["erm", "contrast", "hinge"]}


def hopeless(learner):
    """Make every graph lose more by G_s than by G_c, so that the hinge selects them all."""
    with torch.no_grad():
        for parameter in learner.spurious_head.parameters():
            parameter.mul_(8.0)
    return learner


@pytest.mark.parametrize("c_in", ["raw", "feat"])
@pytest.mark.parametrize("c_rep", ["rep", "feat"])
@pytest.mark.parametrize(("variant", "s_rep"), [("v1", "rep"), ("v2", "rep"), ("v2", "conv")])
def test_every_setting_trains_every_module_by_the_risk_alone(c_in, c_rep, variant, s_rep):
    learner = make(CIGA, c_in=c_in, c_rep=c_rep, variant=variant, s_rep=s_rep)
    terms = learner.loss(BATCH)
    assert list(terms) == TERMS[variant]
    found = gradients_of(learner, terms["erm"])
    assert all(reached(found, module) for module in ("featurizer", "edge_scorer", "backbone", "head"))


@pytest.mark.parametrize(
    ("term", "values", "modules"),
    [
        ("contrast", {"c_rep": "rep"}, {"featurizer", "edge_scorer", "backbone"}),
        ("contrast", {"c_rep": "feat"}, {"featurizer"}),
        ("hinge", {"s_rep": "rep"}, {"featurizer", "edge_scorer", "backbone", "spurious_head"}),
        ("hinge", {"s_rep": "conv"}, {"featurizer", "edge_scorer", "spurious_backbone", "spurious_head"}),
        ("hinge", {"detach_spurious": True}, {"spurious_head"}),
    ],
)
def test_each_penalty_trains_the_modules_it_should(term, values, modules):
    learner = hopeless(make(CIGA, variant="v2", **values))
    found = gradients_of(learner, learner.loss(BATCH)[term])
    names = {"featurizer", "edge_scorer", "backbone", "head", "spurious_backbone", "spurious_head"}
    assert {name for name in names if reached(found, name)} == modules


def scorer_gradient(**values):
    learner = hopeless(make(CIGA, variant="v2", contrast=0.0, **values))
    learner.zero_grad()
    learner.total(learner.loss(BATCH)).backward()
    return torch.cat([p.grad.flatten() for p in learner.edge_scorer.parameters()])


def test_the_hinge_moves_the_scorer_unless_it_is_detached():
    assert float(scorer_gradient(hinge=0.0).abs().sum()) > 0
    assert not torch.allclose(scorer_gradient(hinge=0.0), scorer_gradient(hinge=1.0))
    assert torch.equal(
        scorer_gradient(hinge=0.0, detach_spurious=True), scorer_gradient(hinge=1.0, detach_spurious=True)
    )


def test_the_parts_share_out_the_edges():
    learner = make(CIGA, ratio=0.6)
    h, scores = learner.score(BATCH)
    owner = BATCH.batch[BATCH.edge_index[0]]
    edges = torch.bincount(owner, minlength=10)
    causal = learner.causal(BATCH, scores)
    spurious = learner.left_over(BATCH, causal)
    assert torch.bincount(owner[causal.edges], minlength=10).tolist() == [-(-6 * int(e) // 10) for e in edges]
    assert sorted([*causal.edges.tolist(), *spurious.edges.tolist()]) == list(range(BATCH.num_edges))
    assert h.shape == (BATCH.num_nodes, 6)
    torch.testing.assert_close(scores.sigmoid() + (-scores).sigmoid(), torch.ones_like(scores))


def test_messages_are_weighted_by_the_scores():
    learner = make(CIGA, ratio=1.0).eval()
    before = learner(BATCH)
    with torch.no_grad():
        learner.edge_scorer.mlp[-1].bias.fill_(-1e4)
    silent = learner(BATCH)
    no_edges = subgraph(BATCH, torch.zeros(BATCH.num_edges, dtype=torch.bool)).batch
    expected = learner.head(learner.pool(learner.backbone(no_edges), no_edges))
    torch.testing.assert_close(silent, expected)
    assert not torch.allclose(before, silent)
    with torch.no_grad():
        learner.edge_scorer.mlp[-1].bias.fill_(1e4)
    whole = learner.head(learner.pool(learner.backbone(BATCH), BATCH))
    torch.testing.assert_close(learner(BATCH), whole)


def test_the_whole_graph_leaves_no_hinge():
    learner = make(CIGA, variant="v2", ratio=1.0)
    terms = learner.loss(BATCH)
    found = gradients_of(learner, terms["hinge"])
    assert terms["hinge"].item() == 0.0
    assert not any(found.values())


def test_hinge_by_hand():
    here = torch.tensor([True, True])
    value = hinge(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 2.0]), here)
    assert value.item() == pytest.approx(3 / (1 + 1e-6), rel=1e-6)
    assert hinge(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 2.0]), here).item() == 0.0
    assert hinge(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 2.0]), torch.tensor([True, False])).item() == 0.0


def hard_batch():
    """One node without edges; one edge; two isolated nodes around an edge; a self-loop; an ordinary graph."""
    shapes = [(1, []), (2, [(0, 1)]), (4, [(1, 2)]), (1, [(0, 0)]), (3, [(0, 1), (1, 2), (2, 0)])]
    raw = [
        RawGraph(np.random.default_rng(n).normal(size=(n, 4)).astype(np.float32), np.array(e, int).reshape(-1, 2).T, 0)
        for n, e in shapes
    ]
    batch = PackedGraphs.pack(raw).batch(torch.arange(5))
    batch.y = torch.tensor([0, 0, 0, 1, 1])
    return batch


@pytest.mark.parametrize("backbone", [GIN, GCN])
@pytest.mark.parametrize("values", [{}, {"c_in": "feat", "c_rep": "feat"}, {"s_rep": "conv"}])
def test_hard_graphs_keep_their_rows_and_stay_finite(values, backbone):
    learner, batch = make(CIGA, task=BINARY, variant="v2", backbone=backbone, **values), hard_batch()
    terms = learner.loss(batch)
    assert all(bool(torch.isfinite(term)) for term in terms.values())
    sum(terms.values()).backward()
    assert all(p.grad is None or bool(torch.isfinite(p.grad).all()) for p in learner.parameters())
    assert learner(batch).shape == (5, 2)


def test_v2_starts_from_the_weights_of_v1():
    v1, v2 = make(CIGA).state_dict(), make(CIGA, variant="v2").state_dict()
    assert all(torch.equal(value, v2[name]) for name, value in v1.items())


def test_weights_of_one_mean_the_whole_graph_in_a_soft_split():
    learner = make(CIGA, split="soft").eval()
    with torch.no_grad():
        learner.edge_scorer.mlp[-1].bias.fill_(1e4)
    torch.testing.assert_close(learner(BATCH), learner.head(learner.pool(learner.backbone(BATCH), BATCH)))


@pytest.mark.parametrize("scorer", ["mlp", "normalised"])
def test_a_soft_split_keeps_all_edges_and_still_trains_every_module(scorer):
    learner = hopeless(make(CIGA, split="soft", variant="v2", scorer=scorer))
    _, scores = learner.score(BATCH)
    causal = learner.causal(BATCH, scores)
    assert all(len(part.edges) == BATCH.num_edges for part in (causal, learner.left_over(BATCH, causal)))
    terms = learner.loss(BATCH)
    for term in terms:
        found = gradients_of(learner, learner.loss(BATCH)[term])
        assert all(reached(found, module) for module in ("featurizer", "edge_scorer", "backbone"))


def test_a_graph_without_edges_has_no_left_over_in_either_split():
    batch = hard_batch()
    for split in ("hard", "soft"):
        learner = make(CIGA, task=BINARY, split=split)
        causal = learner.causal(batch, torch.zeros(batch.num_edges))
        assert not bool(learner.left_over(batch, causal).present[0])


def test_goods_form_has_a_shallow_featurizer_whose_output_the_classifier_reads():
    learner = make(CIGA, featurizer_layers=1, c_in="feat", layers=3)
    assert (learner.featurizer.layers, learner.backbone.layers) == (1, 3)
    assert learner.backbone.linear[0].in_features == learner.featurizer.out_dim
    assert make(CIGA, layers=3).featurizer.layers == 3


def test_summed_featurizer_outputs_do_not_depend_on_the_weights_of_edges():
    learner = make(CIGA, c_rep="feat", split="soft").eval()
    before = learner.loss(BATCH)["contrast"]
    with torch.no_grad():
        learner.edge_scorer.mlp[-1].bias.add_(3.0)
    assert torch.equal(before, learner.loss(BATCH)["contrast"])
