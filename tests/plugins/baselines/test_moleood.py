"""MoleOOD's main model: both terms of the loss, their gradients, and what it leaves alone."""

import math

import pytest
import torch
from learner_kit import MULTITASK, gradients, graphs, make, same, train

from plugins.baselines.erm import ERM
from plugins.baselines.moleood import MoleOOD

PACKED = graphs(12)


def learner(expected=None, **values):
    made = make(MoleOOD, **values)
    made.annotations = {"expected_risk": torch.linspace(0.2, 2.0, 12) if expected is None else expected}
    return made


def test_the_loss_is_the_mean_over_environments_and_the_distance_from_the_expected_loss():
    made = learner(strength=0.3).eval()
    batch = PACKED.batch(torch.tensor([4, 1, 7, 11, 0]))
    risk, expected = made.risk(made(batch), batch), made.annotations["expected_risk"]
    terms = made.loss(batch)
    by_loop = torch.stack([risk[batch.env == e].mean() for e in batch.env.unique()]).mean()
    distance = sum(abs(risk[i] - expected[index]) for i, index in enumerate([4, 1, 7, 11, 0])) / 5
    assert terms["environments"].item() == pytest.approx(by_loop.item(), rel=1e-6)
    assert terms["deviation"].item() == pytest.approx(distance.item(), rel=1e-6)
    assert made.total(terms).item() == pytest.approx(0.3 * by_loop.item() + distance.item(), rel=1e-6)


def test_the_distance_is_zero_where_losses_are_as_expected():
    made, batch = learner().eval(), PACKED.batch(torch.arange(12))
    made.annotations = {"expected_risk": made.risk(made(batch), batch).detach()}
    assert made.loss(batch)["deviation"].item() == 0.0
    made.annotations["expected_risk"][3] += 0.6
    assert made.loss(batch)["deviation"].item() == pytest.approx(0.05, rel=1e-5)


def test_each_loss_is_pulled_towards_its_expectation_with_the_same_force():
    made, batch = learner(), PACKED.batch(torch.arange(12))
    risk = torch.rand(12, requires_grad=True)
    made.risk = lambda *_: risk
    made.annotations = {"expected_risk": torch.full((12,), 0.5)}
    (gradient,) = torch.autograd.grad(made.loss(batch)["deviation"], risk)
    assert torch.allclose(gradient, (risk.detach() - 0.5).sign() / 12)


def test_both_weights_act():
    batch = PACKED.batch(torch.arange(12))
    found = {}
    for name, values in {"base": {}, "strength": {"strength": 2.0}, "deviation": {"deviation": 2.0}}.items():
        made = learner(**values)
        found[name] = gradients(made, made.total(made.loss(batch)))["head.0.weight"]
    assert len(set(found.values())) == 3


def test_expected_losses_follow_the_graphs_not_their_place_in_the_batch():
    made = learner().eval()
    one, other = PACKED.batch(torch.arange(12)), PACKED.batch(torch.arange(12).flip(0))
    assert made.loss(one)["deviation"].item() == pytest.approx(made.loss(other)["deviation"].item(), rel=1e-5)


def test_one_environment_without_the_second_term_is_erm_up_to_rounding():
    one = graphs(12, envs=1)
    ours, erm = train(learner(strength=1.0, deviation=0.0, envs=1), one), train(make(ERM), one)
    assert all(torch.allclose(ours[name].float(), erm[name].float(), atol=1e-5) for name in ours)


def test_the_annotations_are_left_alone():
    made = learner()
    before = made.annotations["expected_risk"].clone()
    train(made, PACKED)
    assert torch.equal(made.annotations["expected_risk"], before)
    assert not any("expected" in name for name in made.state_dict())


def test_the_main_model_starts_where_erm_starts():
    assert same(dict(make(MoleOOD).state_dict()), dict(make(ERM).state_dict()))


def test_graphs_without_a_label_count_nowhere():
    packed = graphs(12, task=MULTITASK)
    packed.y[2] = math.nan
    made = learner(task=MULTITASK).eval()
    without = torch.tensor([i for i in range(12) if i != 2])
    whole, part = made.loss(packed.batch(torch.arange(12))), made.loss(packed.batch(without))
    for name in whole:
        assert whole[name].item() == pytest.approx(part[name].item(), rel=1e-5)


def test_a_batch_without_any_environment_is_finite():
    packed = graphs(6)
    packed.env[:] = -1
    terms = learner().loss(packed.batch(torch.arange(6)))
    assert all(bool(torch.isfinite(term)) for term in terms.values())


def test_it_needs_what_its_environment_provides():
    assert MoleOOD.default_environment == "moleood"
    assert MoleOOD.needs == {"environments", "expected_risk"}
