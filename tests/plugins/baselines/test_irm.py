"""IRMv1: penalties worked out by hand, its three estimators, annealing, and the rules for small environments."""

import math

import pytest
import torch
import torch.nn.functional as F
from learner_kit import BINARY, MULTICLASS, MULTITASK, graphs, make, same, train

from harness import UserError
from harness.nn import scale_gradient
from plugins.baselines.erm import ERM
from plugins.baselines.irm import IRM, environment_penalties

FORMS = ["squared", "split", "cross2"]


def margins(m):
    """Four graphs with labels 1, 1, 1, 0 and logits (0, m)."""
    return torch.tensor([[0.0, m]] * 4), torch.tensor([1, 1, 1, 0])


@pytest.mark.parametrize(
    ("margin", "gradient", "penalty"), [(math.log(3), 0.0, 0.0), (2 * math.log(3), 0.3296, 0.10863), (0.0, 0.0, 0.0)]
)
def test_one_environment_by_hand(margin, gradient, penalty):
    g = scale_gradient(*margins(margin), BINARY)
    assert g.mean().item() == pytest.approx(gradient, abs=5e-5)
    found = environment_penalties(g, torch.zeros(4, dtype=torch.long), "squared")
    assert found.tolist() == [pytest.approx(penalty, abs=1e-5)]


def test_the_closed_form_is_the_derivative_by_the_scale():
    z, y = torch.randn(5, 3), torch.tensor([0, 1, 2, 1, 0])
    w = torch.ones((), requires_grad=True)
    expected = [torch.autograd.grad(F.cross_entropy(w * z[i : i + 1], y[i : i + 1]), w)[0] for i in range(5)]
    torch.testing.assert_close(scale_gradient(z, y, MULTICLASS), torch.stack(expected), rtol=0, atol=1e-6)


def by_autograd(z, y, env, form):
    """The penalties of three environments by a second backward pass through a factor on the logits."""
    w = torch.ones((), dtype=torch.float64, requires_grad=True)

    def derivative(rows):
        return torch.autograd.grad(F.cross_entropy(w * z[rows], y[rows]), w, create_graph=True)[0]

    members = [(env == e).nonzero().squeeze(1) for e in range(3)]
    if form == "squared":
        return torch.stack([derivative(rows) ** 2 for rows in members])
    return torch.stack([derivative(rows[::2]) * derivative(rows[1::2]) for rows in members])


@pytest.mark.parametrize("form", ["squared", "split"])
def test_penalties_and_their_gradients_agree_with_automatic_differentiation_in_float64(form):
    rng = torch.Generator().manual_seed(0)
    z = torch.randn(15, 3, dtype=torch.float64, generator=rng, requires_grad=True)
    y, env = torch.randint(3, (15,), generator=rng), torch.randperm(15, generator=rng) % 3
    ours = environment_penalties(scale_gradient(z, y, MULTICLASS), env, form)
    theirs = by_autograd(z, y, env, form)
    torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-14)
    (left,), (right,) = (torch.autograd.grad(values.mean(), z) for values in (ours, theirs))
    torch.testing.assert_close(left, right, rtol=1e-10, atol=1e-14)


def test_cross2_agrees_with_automatic_differentiation_in_float64():
    z = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    y, env = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([0, 1, 1, 0, 1, 0])
    w = torch.ones((), dtype=torch.float64, requires_grad=True)
    means = [
        torch.autograd.grad(F.cross_entropy(w * z[env == e], y[env == e]), w, create_graph=True)[0] for e in (0, 1)
    ]
    ours = environment_penalties(scale_gradient(z, y, MULTICLASS), env, "cross2")[0]
    torch.testing.assert_close(ours, means[0] * means[1], rtol=1e-11, atol=1e-14)
    (left,), (right,) = (torch.autograd.grad(value, z) for value in (ours, means[0] * means[1]))
    torch.testing.assert_close(left, right, rtol=1e-10, atol=1e-14)


def test_split_of_identical_halves_equals_squared():
    g = torch.tensor([0.3, 0.3, -1.0, -1.0, 0.5, 0.5, 0.7, 0.7])
    env = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    torch.testing.assert_close(environment_penalties(g, env, "split"), environment_penalties(g, env, "squared"))


def test_split_uses_even_and_odd_positions_within_each_environment():
    g, env = torch.tensor([1.0, 10.0, 2.0, 20.0, 3.0, 30.0]), torch.tensor([0, 1, 0, 1, 0, 1])
    assert environment_penalties(g, env, "split").tolist() == pytest.approx([2.0 * 2.0, 20.0 * 20.0])


def test_split_is_unbiased_and_squared_exceeds_it_by_the_variance_of_the_mean():
    rng = torch.Generator().manual_seed(0)
    population = torch.randn(2000, generator=rng) + 0.3
    env, n = torch.zeros(8, dtype=torch.long), 8
    draws = [population[torch.randint(2000, (n,), generator=rng)] for _ in range(4000)]
    split, squared = (
        torch.cat([environment_penalties(g, env, form) for g in draws]).mean().item() for form in ("split", "squared")
    )
    target = population.mean().item() ** 2
    assert split == pytest.approx(target, abs=0.02)
    assert squared - target == pytest.approx(population.var().item() / n, abs=0.02)


def test_a_calibrated_constant_classifier_has_no_penalty():
    y = torch.tensor([0, 0, 0, 1, 1, 2])
    z = torch.tensor([[3.0, 2.0, 1.0]]).div(6).log().repeat(6, 1)
    found = environment_penalties(scale_gradient(z, y, MULTICLASS), torch.zeros(6, dtype=torch.long), "squared")
    assert found.item() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("form", ["squared", "split"])
def test_ids_of_absent_environments_change_nothing(form):
    g = torch.randn(6)
    near = environment_penalties(g, torch.tensor([0, 1, 0, 1, 0, 1]), form)
    far = environment_penalties(g, torch.tensor([3, 90, 3, 90, 3, 90]), form)
    assert torch.equal(near, far)


def test_cross2_is_one_product_of_two_means():
    g = torch.tensor([1.0, 2.0, 3.0, -4.0])
    assert environment_penalties(g, torch.tensor([0, 0, 1, 1]), "cross2").tolist() == [pytest.approx(1.5 * -0.5)]


def test_cross2_needs_two_environments():
    with pytest.raises(UserError, match="needs two environments, there are 3"):
        make(IRM, envs=3, form="cross2")


@pytest.mark.parametrize("form", ["squared", "split"])
def test_one_environment_in_a_batch_has_its_penalty(form):
    packed = graphs(12)
    packed.env = torch.zeros(12, dtype=torch.long)
    learner, batch = make(IRM, form=form, envs=1), packed.batch(torch.arange(12))
    w = torch.ones((), requires_grad=True)
    z = learner(batch).detach()
    halves = (slice(0, None, 2), slice(1, None, 2)) if form == "split" else (slice(None),) * 2
    one, other = (torch.autograd.grad(F.cross_entropy(w * z[half], batch.y[half]), w)[0] for half in halves)
    assert abs(one * other) > 1e-4
    assert learner.loss(batch)["invariance"].item() == pytest.approx((one * other).item(), rel=1e-5)
    assert not same(train(make(IRM, form=form, envs=1), packed), train(make(ERM), packed))


def test_the_product_of_two_environments_is_none_where_a_batch_holds_one():
    packed = graphs(12)
    packed.env = torch.zeros(12, dtype=torch.long)
    learner = make(IRM, form="cross2")
    term = learner.loss(packed.batch(torch.arange(12)))["invariance"]
    assert term.item() == 0.0
    assert term.requires_grad
    ours, erm = train(make(IRM, form="cross2"), packed), train(make(ERM), packed)
    for name, value in erm.items():
        torch.testing.assert_close(ours[name], value)


def test_weight_zero_is_erm_bit_for_bit():
    packed = graphs(12)
    assert same(train(make(IRM, penalty=0.0, dropout=0.3), packed), train(make(ERM, dropout=0.3), packed))
    assert not same(train(make(IRM), packed), train(make(ERM), packed))


@pytest.mark.parametrize("form", FORMS)
def test_environments_of_one_graph_are_finite(form):
    env = torch.tensor([0, 1, 1, 1]) if form == "cross2" else torch.tensor([0, 1, 2, 2])
    found = environment_penalties(torch.randn(4, requires_grad=True), env, form)
    assert len(found) == {"squared": 3, "split": 1, "cross2": 1}[form]
    assert bool(torch.isfinite(found).all())
    packed = graphs(4, envs=4)
    packed.env = torch.arange(4) % (2 if form == "cross2" else 4)
    terms = make(IRM, form=form).loss(packed.batch(torch.arange(4)))
    assert all(bool(torch.isfinite(term)) for term in terms.values())


def test_unlabelled_graphs_count_in_no_environment():
    packed = graphs(6, task=MULTITASK)
    packed.env = torch.tensor([0, 0, 0, 1, 1, 1])
    learner = make(IRM, task=MULTITASK).eval()
    whole = learner.loss(packed.batch(torch.tensor([0, 1, 3, 4])))["invariance"]
    packed.y[[2, 5]] = torch.nan
    found = learner.loss(packed.batch(torch.arange(6)))["invariance"]
    assert found.item() == pytest.approx(whole.item(), rel=1e-5)


def test_the_risk_can_be_averaged_over_environments():
    packed = graphs(6)
    packed.env = torch.tensor([0, 0, 0, 0, 0, 1])
    batch, learner = packed.batch(torch.arange(6)), make(IRM, erm_term="environments").eval()
    risk = learner.risk(learner(batch), batch)
    expected = (risk[:5].mean() + risk[5]) / 2
    assert learner.loss(batch)["erm"].item() == pytest.approx(expected.item(), rel=1e-6)


def test_without_annealing_the_optimizer_is_never_reset():
    packed, learner = graphs(12), make(IRM)
    optimizers = learner.optimizers()
    for learner.step in range(3):
        learner.training_step(packed.batch(torch.arange(12)), optimizers)
    assert all(int(state["step"]) == 3 for state in optimizers[0].state.values())
