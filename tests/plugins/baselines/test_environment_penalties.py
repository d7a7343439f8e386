"""V-REx, IB-IRM, Coral and EIIL: values worked out by hand, independent float64 loops, live gradients, annealing."""

import itertools

import numpy as np
import pytest
import torch
from learner_kit import MULTITASK, gradients, graphs, make, reached, same, train

from harness.nn import environment_mean, environment_moments, environment_size, environment_variance
from plugins.baselines.coral import Coral
from plugins.baselines.eiil import EIIL
from plugins.baselines.ib_irm import IBIRM
from plugins.baselines.irm import IRM
from plugins.baselines.vrex import VREx

PENALTIES = [(VREx, "variance"), (IBIRM, "bottleneck"), (Coral, "alignment"), (IRM, "invariance")]


def one_batch(packed):
    return next(iter(packed.batches(len(packed))))


class FixedRisk(VREx):
    """V-REx on given risks."""

    def risk(self, logits, batch):
        del batch
        return self.given + 0.0 * logits.sum()


def variance(risks, env, **values):
    learner = make(FixedRisk, envs=3, **values)
    learner.given = torch.tensor(risks, requires_grad=True)
    batch = one_batch(graphs(len(risks)))
    batch.env = torch.tensor(env)
    return learner.loss(batch)["variance"], learner.given


@pytest.mark.parametrize(("spread", "expected"), [("population", 0.0866667), ("sample", 0.13)])
def test_vrex_variance_of_three_risks(spread, expected):
    assert variance([0.2, 0.4, 0.9], [0, 1, 2], spread=spread)[0].item() == pytest.approx(expected, abs=1e-6)


def test_vrex_of_two_environments_is_a_quarter_or_half_of_the_squared_difference():
    for spread, share in (("population", 4), ("sample", 2)):
        assert variance([0.2, 0.9], [0, 1], spread=spread)[0].item() == pytest.approx(0.7**2 / share, abs=1e-6)


def test_vrex_gradient_is_twice_the_deviation_over_the_number():
    value, risks = variance([0.2, 0.4, 0.9], [0, 1, 2])
    value.backward()
    torch.testing.assert_close(risks.grad, 2 * (risks.detach() - 0.5) / 3)


def test_vrex_of_equal_environments_is_zero_with_zero_gradient():
    value, risks = variance([0.3, 0.5, 0.5, 0.3], [0, 0, 1, 1])
    value.backward()
    assert value.item() == 0.0
    assert not risks.grad.any()


def test_vrex_of_one_environment_is_a_live_zero():
    value, _ = variance([0.3, 0.5], [1, 1])
    assert value.item() == 0.0
    assert value.requires_grad


def test_bottleneck_by_hand():
    values, env = torch.tensor([[0.0], [2.0]]), torch.zeros(2, dtype=torch.long)
    assert environment_variance(values, env).tolist() == [[2.0]]
    assert environment_variance(3 * values, env).item() == pytest.approx(9 * 2)
    assert environment_variance(values + 7, env).item() == pytest.approx(2)
    constant = torch.ones(2, 1, requires_grad=True)
    environment_variance(constant, env).sum().backward()
    assert not constant.grad.any()


def test_statistics_leave_out_unknown_and_small_environments():
    values, env = torch.randn(6, 2), torch.tensor([-1, 0, 0, 2, 2, 5])
    assert environment_mean(values, env).shape == (3, 2)
    assert environment_mean(values, env, at_least=2).shape == (2, 2)
    assert environment_variance(values, env).shape == (2, 2)
    means, covariances = environment_moments(values, env)
    torch.testing.assert_close(means, torch.stack([values[1:3].mean(0), values[3:5].mean(0)]))
    torch.testing.assert_close(covariances, torch.stack([values[1:3].T.cov(), values[3:5].T.cov()]))
    assert environment_size(env).tolist() == [1, 2, 2, 2, 2, 1]


def alignment(left, right, **values):
    """Coral's penalty between two environments with these embeddings."""
    learner = make(Coral, **values)
    h = torch.cat([left, right])
    learner.embed = lambda _: h
    learner.head = torch.nn.Linear(h.size(1), 3)
    batch = one_batch(graphs(len(h)))
    batch.env = torch.tensor([0] * len(left) + [1] * len(right))
    return learner.loss(batch)["alignment"].item()


def test_coral_by_hand():
    left, right = torch.tensor([[-1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0, -1.0], [0.0, 1.0]])
    assert alignment(left, right) == pytest.approx(2.0)
    assert alignment(right, left) == pytest.approx(2.0)
    assert alignment(left, left) == pytest.approx(0.0)


def test_coral_of_shifted_and_scaled_features():
    x, shift = torch.randn(5, 3), torch.tensor([1.0, -2.0, 0.5])
    assert alignment(x, x + shift) == pytest.approx(shift.square().mean().item(), rel=1e-5)
    assert alignment(x, x + shift, moments="covariance") == pytest.approx(0.0, abs=1e-6)
    expected = 9 * x.T.cov().square().mean().item()
    assert alignment(x, 2 * x, moments="covariance") == pytest.approx(expected, rel=1e-4)


def test_coral_agrees_with_a_float64_loop_over_pairs():
    rng = np.random.default_rng(0)
    h, env = rng.normal(size=(14, 4)), np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, -1])
    groups = [h[env == e] for e in range(3)]
    pairs = [
        ((a.mean(0) - b.mean(0)) ** 2).mean() + ((np.cov(a.T) - np.cov(b.T)) ** 2).mean()
        for a, b in itertools.combinations(groups, 2)
    ]
    learner = make(Coral, envs=4)
    learner.embed = lambda _: torch.from_numpy(h)
    learner.head = torch.nn.Linear(4, 3).double()
    batch = one_batch(graphs(14))
    batch.env = torch.from_numpy(env)
    assert learner.loss(batch)["alignment"].item() == pytest.approx(np.mean(pairs), rel=1e-12)


@pytest.mark.parametrize(("method", "term"), PENALTIES)
def test_the_penalty_reaches_the_encoder(method, term):
    learner = make(method)
    found = gradients(learner, learner.loss(one_batch(graphs(12)))[term])
    assert reached(found, "backbone")
    assert reached(found, "head") == (term in ("variance", "invariance"))


def test_ib_irm_without_bottleneck_is_irm():
    packed = graphs(12)
    assert same(train(make(IBIRM, bottleneck=0.0), packed), train(make(IRM), packed))


def test_eiil_is_irm_averaged_over_environments():
    packed = graphs(12)
    assert same(train(make(EIIL), packed), train(make(IRM, erm_term="environments"), packed))


def test_before_its_start_the_bottleneck_has_no_effect():
    packed = graphs(12)
    early = {"bottleneck_start": 100}
    assert same(
        train(make(IBIRM, bottleneck=1.0, **early), packed), train(make(IBIRM, bottleneck=50.0, **early), packed)
    )


@pytest.mark.parametrize(("method", "term"), [pair for pair in PENALTIES if pair[0] is not Coral])
def test_the_weight_changes_at_the_step_itself_and_the_optimizer_starts_afresh(method, term):
    starts = "bottleneck_start" if method is IBIRM else "anneal_steps"
    learner = make(method, **{starts: 2})
    early = 0.0 if method is IBIRM else 1.0
    optimizers, batch, counts, weights = learner.optimizers(), one_batch(graphs(12)), [], []
    for learner.step in range(4):
        weights.append(learner.weight(term))
        learner.training_step(batch, optimizers)
        counts.append(max(state["step"] for state in optimizers[0].state.values()))
    full = getattr(learner, next(n for n, h in method.hparams.items() if h.weight_of == term))
    assert weights == [early, early, full, full]
    assert counts == [1, 2, 1, 2]


@pytest.mark.parametrize("method", [VREx, IBIRM, IRM])
def test_the_optimizer_is_empty_when_the_loss_of_the_switching_step_is_computed(method):
    learner, filled = make(method, anneal_steps=2), []
    optimizers, batch, loss = learner.optimizers(), one_batch(graphs(12)), learner.loss
    learner.loss = lambda given: filled.append(len(optimizers[0].state)) or loss(given)
    for learner.step in range(4):
        learner.training_step(batch, optimizers)
    count = len(list(learner.parameters()))
    assert filled == [0, count, 0, count]


def test_two_equal_thresholds_restart_once():
    assert make(IBIRM, anneal_steps=3, bottleneck_start=3).restarts() == {3}
    assert make(IBIRM, anneal_steps=3, bottleneck_start=5).restarts() == {3, 5}


@pytest.mark.parametrize("method", [VREx, Coral, IBIRM])
def test_graphs_without_any_label_are_in_no_environment(method):
    batch = one_batch(graphs(8, task=MULTITASK))
    batch.y[0] = torch.nan
    assert make(method, task=MULTITASK).environments(batch).tolist() == [-1, *batch.env[1:].tolist()]
