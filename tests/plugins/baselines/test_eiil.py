"""EIIL as a method: IRM, averaged over environments, on whatever split it is given."""

import torch
from learner_kit import graphs, make, same, train

from harness.nn import environment_mean, scale_gradient
from plugins.baselines.eiil import EIIL
from plugins.baselines.erm import ERM
from plugins.baselines.irm import IRM

PACKED = graphs(12)


def test_the_loss_is_averaged_over_environments():
    learner, batch = make(EIIL, penalty=3.0), PACKED.batch(torch.arange(12))
    learner.eval()
    logits = learner(batch)
    terms = learner.loss(batch)
    risks = environment_mean(learner.risk(logits, batch), batch.env)
    gradients = environment_mean(scale_gradient(logits, batch.y, learner.info.task), batch.env)
    assert torch.equal(terms["erm"], risks.mean())
    assert torch.equal(terms["invariance"], gradients.square().mean())
    assert learner.weight("invariance") == 3.0


def test_it_is_irm_averaged_over_environments():
    assert same(train(make(EIIL), PACKED), train(make(IRM, erm_term="environments"), PACKED))


def test_without_penalty_it_is_erm():
    assert same(train(make(EIIL, penalty=0.0, erm_term="samples"), PACKED), train(make(ERM), PACKED))


def test_the_invariant_model_starts_afresh():
    assert same(dict(make(EIIL).state_dict()), dict(make(ERM).state_dict()))


def test_environments_come_from_the_component_of_its_name():
    assert EIIL.default_environment == "eiil"
    assert EIIL.needs == {"environments"}
    assert not EIIL.upstream
