"""DisC in GALA's form: parts, their weights, one network with a head for each part, and statistics."""

import torch
from learner_kit import gradients as gradients_of
from learner_kit import graphs, make, reached

from plugins.baselines._debiased import amplified, relative_difficulty
from plugins.baselines.disc_gala import DisCGALA

PACKED = graphs(12, nodes=(4, 8))
BATCH = PACKED.batch(torch.arange(12))


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
