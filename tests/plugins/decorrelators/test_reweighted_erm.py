"""Eqn. 19 against hand-computed values and its limits."""

import pytest
import torch
from learner_kit import gradients, graphs, make, reached, votes

from plugins.decorrelators.reweighted_erm import ReweightedERM

PACKED = graphs(6)


def batch_with(spurious):
    batch = PACKED.batch(torch.arange(6))
    batch.spurious = spurious
    return batch


def loss_of(learner, spurious):
    return learner.loss(batch_with(spurious))["reweighted"]


def only_on(columns, k=2):
    """Votes that put everything on the given class of each graph."""
    return torch.eye(3)[columns].unsqueeze(1).repeat(1, k, 1)


def test_the_formula():
    learner, spurious = make(ReweightedERM, gamma=0.7), votes(6)
    batch = batch_with(spurious)
    mean = (spurious * learner.model_weights.reshape(1, 2, 1)).sum(1).gather(1, batch.y.unsqueeze(1)).squeeze(1)
    expected = ((1 - mean**0.7) / 0.7 * learner.risk(learner(batch), batch)).mean()
    assert loss_of(learner, spurious).item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("gamma", [0.9, 0.5, 0.1, 0.01])
def test_votes_that_always_miss_the_label_give_erm_over_gamma(gamma):
    learner = make(ReweightedERM, gamma=gamma)
    batch = batch_with(only_on((PACKED.y + 1) % 3))
    erm = learner.risk(learner(batch), batch).mean().item()
    assert loss_of(learner, batch.spurious).item() == pytest.approx(erm / gamma, rel=1e-5)


def test_votes_that_always_hit_the_label_give_exactly_zero():
    learner = make(ReweightedERM)
    loss = loss_of(learner, only_on(PACKED.y))
    found = gradients(learner, loss)
    assert loss.item() == 0.0
    assert all(value == 0.0 for value in found.values())


def test_one_hot_model_weights_keep_a_single_quantifier():
    learner, spurious = make(ReweightedERM), votes(6)
    learner.model_weights = torch.tensor([0.0, 1.0])
    expected = loss_of(learner, spurious)
    learner.model_weights = torch.ones(1)
    assert loss_of(learner, spurious[:, 1:]).item() == pytest.approx(expected.item(), rel=1e-6)


def test_the_loss_reaches_backbone_and_head():
    learner = make(ReweightedERM)
    found = gradients(learner, loss_of(learner, votes(6)))
    assert reached(found, "backbone")
    assert reached(found, "head")


def test_float64_weights_do_not_change_the_loss_type():
    learner = make(ReweightedERM)
    learner.model_weights = learner.model_weights.double()
    assert loss_of(learner, votes(6)).dtype == torch.float32
