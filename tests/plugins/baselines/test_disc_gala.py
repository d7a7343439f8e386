"""DisC in GALA's form: parts, their weights, one network with a head for each part, and statistics."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from learner_kit import BINARY, MULTICLASS, graphs, make, reached, running_statistics_are_the_predictions, train
from learner_kit import gradients as gradients_of

from harness import PackedGraphs, RawGraph
from plugins.baselines._debiased import amplified, relative_difficulty
from plugins.baselines.disc_gala import DisCGALA

PACKED = graphs(12, nodes=(4, 8))
BATCH = PACKED.batch(torch.arange(12))


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_galas_parts_divide_the_edges_and_their_weights_sum_to_one_by_score():
    learner = make(DisCGALA, ratio=0.5)
    scores = learner.scorer(learner.masker(BATCH), BATCH)
    seen = []
    learner.backbone.register_forward_pre_hook(
        lambda _, args, kwargs: seen.append({"batch": args[0], **kwargs}), with_kwargs=True
    )
    learner.branches(BATCH)
    causal, bias = seen
    assert causal["batch"].num_edges + bias["batch"].num_edges == BATCH.num_edges
    whole = torch.cat([causal["edge_weight"], 1 - bias["edge_weight"]])
    assert torch.allclose(whole.sort().values, scores.sigmoid().sort().values, atol=1e-6)


def test_galas_form_shares_one_network_and_has_a_head_for_each_part():
    learner = make(DisCGALA, ratio=0.5)
    terms = learner.loss(BATCH)
    assert set(terms) == {"causal", "bias"}
    for term, own, other in (("causal", "head", "bias_head"), ("bias", "bias_head", "head")):
        found = gradients_of(learner, learner.loss(BATCH)[term])
        assert all(reached(found, name) for name in ("backbone", "masker", "scorer", own))
        assert not reached(found, other)


def test_the_loss_by_hand():
    learner = make(DisCGALA, bias=2.0).eval()
    z_c, z_b = learner.branches(BATCH)
    causal, biased = (torch.nn.functional.cross_entropy(z, BATCH.y, reduction="none") for z in heads(learner, z_c, z_b))
    weight = relative_difficulty(causal, biased)
    terms = learner.loss(BATCH)
    assert torch.allclose(terms["causal"], (weight * causal).mean())
    assert torch.allclose(terms["bias"], amplified(learner.bias_head(z_b), BATCH.y, 0.7, "paper").mean())
    assert torch.allclose(learner.total(terms), terms["causal"] + 2 * terms["bias"])


def heads(learner, z_c, z_b):
    return learner.head(z_c), learner.bias_head(z_b)


def test_prediction_reads_the_causal_part_alone():
    learner = make(DisCGALA).eval()
    assert torch.equal(learner(BATCH), learner.head(learner.branches(BATCH)[0]))


def test_running_statistics_are_those_of_causal_parts_and_training_is_the_same():
    running_statistics_are_the_predictions(DisCGALA, PACKED, "backbone.norm")


@pytest.mark.parametrize("task", [BINARY, MULTICLASS])
def test_training_is_finite(task):
    state = train(make(DisCGALA, task=task), graphs(12, task=task), batch_size=2)
    assert all(torch.isfinite(value).all() for value in state.values())


def test_graphs_without_edges_and_of_one_node():
    x = torch.randn(7, 4).numpy()
    none = np.zeros((2, 0), dtype=np.int64)
    for first in (np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), none):
        packed = PackedGraphs.pack([RawGraph(x[:3], first, 0), RawGraph(x[3:6], none, 0), RawGraph(x[6:], none, 0)])
        batch = replace(packed, y=torch.tensor([0, 1, 2])).batch(torch.arange(3))
        learner = make(DisCGALA, ratio=1.0)
        total = sum(learner.loss(batch).values())
        total.backward()
        assert torch.isfinite(total)
        assert all(p.grad is None or torch.isfinite(p.grad).all() for p in learner.parameters())
