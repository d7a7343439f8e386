"""Eqn. 7 against hand-computed values, its switches, and its identity with ERM where it must and must not hold."""

import importlib
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from learner_kit import MULTICLASS, Task, gradients, graphs, make, reached, same, train, votes

from plugins.baselines.erm import ERM
from plugins.decorrelators.eqn7 import Eqn7

PACKED = graphs(12, task=MULTICLASS)
OFFICIAL_MULTI = {
    "heads": "separate",
    "separate_head_trainable": False,
    "weight_source": "model",
    "weight_detach": False,
    "divide_by_k": False,
    "detach_multi": True,
}


def batch_with(spurious):
    batch = PACKED.batch(torch.arange(len(spurious)))
    batch.spurious = spurious
    return batch


def test_the_formula_term_by_term():
    learner, batch = make(Eqn7, gamma=0.3), batch_with(votes(5, k=3))
    learner.model_weights = torch.tensor([0.5, 0.3, 0.2])
    z = torch.randn(5, 3)
    expected = 0.0
    for k in range(3):
        for i in range(5):
            s = batch.spurious[i, k]
            weight = (1 - s[batch.y[i]] ** 0.3) / 0.3
            expected += learner.model_weights[k] * weight * -(s * z[i].log_softmax(0)).sum() / 5 / 3
    assert learner.invariance(z, batch).item() == pytest.approx(float(expected), rel=1e-5)


def test_opposite_votes_balance_at_zero_logits():
    learner = make(Eqn7, task=Task("binary", 2), gamma=1e-3, divide_by_k=False)
    learner.model_weights = torch.ones(1)
    batch = batch_with(torch.tensor([[[0.9, 0.1]], [[0.1, 0.9]]]))
    batch.y = torch.tensor([0, 1])
    z = torch.zeros(2, 2, requires_grad=True)
    weight = float(learner.graph_weights(batch.spurious, z, learner.model_weights, batch.y)[0, 0, 0])
    shared = torch.zeros(2, requires_grad=True)
    loss = learner.invariance(shared.expand(2, 2), batch) / weight
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert shared.grad.abs().max().item() == pytest.approx(0.0, abs=1e-7)


def test_without_weights_the_term_is_cross_entropy_to_the_mean_vote(monkeypatch):
    monkeypatch.setattr("plugins.decorrelators.eqn7.omega", lambda s, _: torch.ones_like(s))
    learner, batch = make(Eqn7, divide_by_k=False), batch_with(votes(6, k=2))
    mean = (batch.spurious * learner.model_weights.reshape(1, 2, 1)).sum(1)
    z = torch.randn(6, 3, requires_grad=True)
    loss = learner.invariance(z, batch)
    loss.backward()
    assert loss.item() == pytest.approx(F.cross_entropy(z, mean).item(), rel=1e-5)
    torch.testing.assert_close(z.grad, (z.softmax(1) - mean) / 6)


@pytest.mark.parametrize("values", [{}, {"heads": "separate"}])
def test_strength_zero_is_erm_bit_for_bit(values):
    erm = train(make(ERM, dropout=0.3), PACKED)
    ours = train(make(Eqn7, strength=0.0, dropout=0.3, **values), PACKED, spurious=votes())
    assert same(erm, ours)


def test_strength_changes_the_training_in_the_papers_reading():
    erm = train(make(ERM), PACKED)
    for strength in (1e-3, 1.0):
        ours = train(make(Eqn7, strength=strength), PACKED, spurious=votes())
        assert not same(erm, ours, only="backbone")


@pytest.mark.parametrize("strength", [1e-3, 1.0, 100.0])
def test_the_public_code_with_several_quantifiers_is_erm_bit_for_bit(strength):
    erm = train(make(ERM, dropout=0.3), PACKED)
    ours = train(make(Eqn7, strength=strength, dropout=0.3, **OFFICIAL_MULTI), PACKED, spurious=votes())
    assert same(erm, ours)


def test_the_public_code_with_one_quantifier_trains_through_a_frozen_head():
    spurious = votes(k=1)
    learner = make(Eqn7, strength=1.0, scores=(0.3,), **OFFICIAL_MULTI)
    before = {name: value.clone() for name, value in learner.state_dict().items()}
    after = train(learner, PACKED, spurious=spurious)
    assert same(before, after, only="spurious_head")
    assert not same(train(make(ERM), PACKED), after, only="backbone")


def test_a_frozen_head_is_in_no_optimizer():
    learner = make(Eqn7, **OFFICIAL_MULTI)
    held = {id(p) for optimizer in learner.optimizers() for group in optimizer.param_groups for p in group["params"]}
    assert not held & {id(p) for p in learner.spurious_head.parameters()}
    assert {id(p) for p in learner.head.parameters()} <= held


@pytest.mark.parametrize(
    ("values", "modules"),
    [
        ({}, ["backbone", "head"]),
        ({"per_class": True}, ["backbone", "head"]),
        ({"sample_weight": "mean"}, ["backbone", "head"]),
        ({"weight_source": "model"}, ["backbone", "head"]),
        ({"heads": "separate"}, ["backbone", "spurious_head"]),
    ],
)
def test_the_term_reaches_every_module_it_should(values, modules):
    learner = make(Eqn7, **values)
    found = gradients(learner, learner.loss(batch_with(votes(6)))["invariance"])
    assert all(reached(found, module) for module in modules)
    assert reached(found, "head") == ("head" in modules)


def test_gradient_flows_through_the_models_own_weights_only_if_asked_for():
    batch, z = batch_with(votes(6)), torch.randn(6, 3, requires_grad=True)
    cut, live = (
        torch.autograd.grad(make(Eqn7, weight_source="model", weight_detach=cut).invariance(z, batch), z)[0]
        for cut in (True, False)
    )
    assert not torch.allclose(cut, live)


def test_certain_votes_are_finite():
    certain = torch.eye(3)[torch.tensor([0, 1, 2, 0])].unsqueeze(1).repeat(1, 2, 1)
    for gamma in (0.0, 0.5):
        learner = make(Eqn7, gamma=gamma)
        z = torch.tensor([[100.0, -100.0, 0.0]] * 4, requires_grad=True)
        loss = learner.invariance(z, batch_with(certain))
        loss.backward()
        assert bool(torch.isfinite(loss))
        assert bool(torch.isfinite(z.grad).all())


def test_switches_change_what_they_say():
    batch, z = batch_with(votes(6, k=2)), torch.randn(6, 3)
    value = {name: make(Eqn7, **values).invariance(z, batch).item() for name, values in {
        "paper": {}, "no 1/K": {"divide_by_k": False}, "mean": {"sample_weight": "mean"},
        "class": {"per_class": True}, "model": {"weight_source": "model"},
    }.items()}  # fmt: skip
    assert value["no 1/K"] == pytest.approx(2 * value["paper"], rel=1e-6)
    assert len({round(v, 6) for v in value.values()}) == len(value)


def test_per_class_weights_match_the_literal_formula():
    learner, batch, z = make(Eqn7, per_class=True), batch_with(votes(4, k=1)), torch.randn(4, 3)
    learner.model_weights = torch.ones(1)
    s = batch.spurious[:, 0]
    expected = -((1 - s.sqrt()) / 0.5 * s * z.log_softmax(1)).sum(1).mean()
    assert learner.invariance(z, batch).item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_summed_ground_truth_loss_shrinks_the_strength_by_the_number_of_graphs():
    batch = batch_with(votes(6))
    mean, total = (make(Eqn7, ground_truth_loss=how).loss(batch) for how in ("mean", "sum"))
    assert total["erm"].item() == pytest.approx(12 * mean["erm"].item(), rel=1e-6)
    assert total["invariance"].item() == mean["invariance"].item()


def test_labels_with_a_trailing_axis_give_the_same_loss():
    learner, batch = make(Eqn7), batch_with(votes(6))
    expected = learner.loss(batch)
    batch.y = batch.y.unsqueeze(1)
    found = learner.loss(batch)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_the_computed_optimum_is_that_of_the_implemented_loss(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    optimum = importlib.import_module("optimum")
    p = optimum.joint(0.8, 0.9)
    cells = (p * 600).round().long()
    y, motif, base = cells.nonzero().repeat_interleave(cells[cells > 0], 0).T
    learner = make(Eqn7, gamma=optimum.GAMMA)
    learner.model_weights = torch.ones(1)
    batch = SimpleNamespace(y=y, spurious=(p.sum(1) / p.sum((0, 1))).T[base].unsqueeze(1))
    logits = optimum.optima(0.8, 0.9)["with Eqn. 7, λ/K 1"].log().requires_grad_()
    z = logits[:, motif, base].T
    (F.cross_entropy(z, y) + learner.invariance(z, batch)).backward()
    torch.testing.assert_close(logits.grad, torch.zeros(3, 3, 3), atol=1e-6, rtol=0)
