"""Contrastive losses against values worked out by hand and against loops."""

import math

import numpy as np
import pytest
import torch

from harness.nn import environment_contrastive, supervised_contrastive


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_two_orthogonal_classes():
    z = torch.eye(2).repeat_interleave(2, 0)
    assert supervised_contrastive(z, torch.tensor([0, 0, 1, 1])).item() == pytest.approx(math.log(math.e + 2) - 1)


@pytest.mark.parametrize("y", [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
def test_equal_rows(y):
    assert supervised_contrastive(torch.ones(4, 3), torch.tensor(y)).item() == pytest.approx(math.log(3))


def test_scale_and_order_do_not_matter():
    z, y = torch.randn(7, 3), torch.tensor([0, 1, 1, 0, 2, 2, 0])
    loss = supervised_contrastive(z, y)
    order = torch.randperm(7)
    assert supervised_contrastive(z * torch.rand(7, 1).add(0.5), y).item() == pytest.approx(loss.item(), abs=1e-6)
    assert supervised_contrastive(z[order], y[order]).item() == pytest.approx(loss.item(), abs=1e-6)


def test_a_graph_without_a_positive_is_no_anchor():
    z, y = torch.randn(4, 3), torch.tensor([0, 1, 1, 2])
    s = torch.nn.functional.normalize(z) @ torch.nn.functional.normalize(z).T / 0.5
    expected = -sum(
        s[i, j] - torch.stack([s[i, a] for a in range(4) if a != i]).logsumexp(0) for i, j in [(1, 2), (2, 1)]
    )
    assert supervised_contrastive(z, y, 0.5).item() == pytest.approx(expected.item() / 2, abs=1e-6)


def test_no_positive_at_all_is_a_live_zero():
    z = torch.randn(3, 2, requires_grad=True)
    loss = supervised_contrastive(z, torch.tensor([0, 1, 2]))
    loss.backward()
    assert loss.item() == 0.0
    assert z.grad.equal(torch.zeros(3, 2))


def test_gradients_are_finite_with_zero_rows_and_small_temperature():
    z = torch.randn(6, 2)
    z[2] = 0.0
    z.requires_grad_()
    supervised_contrastive(z, torch.tensor([0, 0, 0, 1, 1, 1]), 0.01).backward()
    assert bool(torch.isfinite(z.grad).all())
    assert float(z.grad.abs().sum()) > 0


def by_loop(z, positives, negatives, temperature):
    """Mean of the anchors' losses in double precision, from the definition."""
    z = z.double().numpy()
    unit = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
    losses = []
    for i in range(len(z)):
        pulled, pushed = positives(i), negatives(i)
        if pulled:
            total = sum(math.exp(unit[i] @ unit[j] / temperature) for j in [*pulled, *pushed])
            losses.append(-sum(unit[i] @ unit[p] / temperature - math.log(total) for p in pulled) / len(pulled))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_both_losses_equal_a_loop(temperature):
    z, y, env = torch.randn(12, 4), torch.randint(3, (12,)), torch.randint(3, (12,))
    z[3] = 0.0
    others = [[j for j in range(12) if j != i] for i in range(12)]
    supervised = by_loop(
        z,
        lambda i: [j for j in others[i] if y[j] == y[i]],
        lambda i: [j for j in others[i] if y[j] != y[i]],
        temperature,
    )
    across = by_loop(
        z,
        lambda i: [j for j in others[i] if y[j] == y[i] and env[j] != env[i]],
        lambda i: [j for j in others[i] if y[j] != y[i] and env[j] == env[i]],
        temperature,
    )
    assert supervised_contrastive(z, y, temperature).item() == pytest.approx(supervised, rel=1e-5)
    assert environment_contrastive(z, y, env, temperature).item() == pytest.approx(across, rel=1e-5)


class TestEnvironments:
    """y = (0, 0, 1, 1) and e = (0, 1, 0, 1): each graph has one positive and one negative."""

    y, env = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])

    @pytest.mark.parametrize(
        ("rows", "expected"),
        [
            ([0, 0, 0, 0], math.log(2)),
            ([0, 0, 1, 1], math.log(1 + math.e) - 1),
            ([0, 1, 0, 1], math.log(1 + math.e)),
        ],
    )
    def test_equal_rows_rows_by_label_and_rows_by_environment(self, rows, expected):
        z = torch.eye(2)[rows]
        assert environment_contrastive(z, self.y, self.env).item() == pytest.approx(expected, rel=1e-6)

    def test_an_anchor_is_compared_with_its_positives_and_negatives_only(self):
        z, y = torch.randn(5, 3, requires_grad=True), torch.tensor([0, 0, 0, 1, 1])
        environment_contrastive(z, y, torch.tensor([0, 1, 1, 2, 2])).backward()
        assert bool((z.grad[:3].abs().sum(1) > 0).all())
        assert z.grad[3:].equal(torch.zeros(2, 3)), "no anchor, and of another class and environment than the anchors"

    @pytest.mark.parametrize("env", [[0, 0, 1, 1], [0, 0, 0, 0]])
    def test_without_any_positive_the_environments_are_ignored(self, env):
        z = torch.randn(4, 3, requires_grad=True)
        found = environment_contrastive(z, self.y, torch.tensor(env))
        assert torch.equal(found, supervised_contrastive(z, self.y))
        assert found.item() > 0
        found.backward()
        assert float(z.grad.abs().sum()) > 0

    def test_classes_that_all_differ_give_a_live_zero(self):
        z = torch.randn(3, 2, requires_grad=True)
        environment_contrastive(z, torch.arange(3), torch.tensor([0, 0, 1])).backward()
        assert z.grad.equal(torch.zeros(3, 2))

    def test_it_is_never_negative_and_its_gradient_is_that_of_differences(self):
        z = torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
        y, env = torch.randint(2, (8,)), torch.randint(3, (8,))
        assert environment_contrastive(z, y, env).item() >= 0
        assert torch.autograd.gradcheck(lambda rows: environment_contrastive(rows, y, env, 0.5), (z,))
