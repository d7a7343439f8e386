"""Omega and the weights made from it."""

import math

import pytest
import torch

from plugins.decorrelators._targets import mean_vote, of_label, omega, omega_of_log


@pytest.mark.parametrize(
    ("gamma", "s", "value"),
    [
        (0.5, 0.01, 1.8),
        (0.5, 0.1, 1.3675),
        (0.5, 0.5, 0.5858),
        (0.5, 0.9, 0.1026),
        (0.05, 0.01, 4.1134),
        (0.05, 0.1, 2.175),
        (0.05, 0.5, 0.6813),
        (0.05, 0.9, 0.1051),
        (1e-4, 0.1, 2.3023),
        (0.0, 0.1, -math.log(0.1)),
    ],
)
def test_omega_values(gamma, s, value):
    assert omega(torch.tensor([s]), gamma).item() == pytest.approx(value, abs=6e-5)


@pytest.mark.parametrize("gamma", [0.01, 0.3, 0.5, 1.0])
def test_omega_falls_from_one_over_gamma_to_zero(gamma):
    s = torch.linspace(0, 1, 50)
    value = omega(s, gamma)
    assert value[0].item() == pytest.approx(1 / gamma, rel=1e-6)
    assert value[-1].item() == 0.0
    assert bool((value.diff() < 0).all())
    if gamma == 1.0:
        torch.testing.assert_close(value, 1 - s)


def test_omega_at_zero_gamma_is_finite():
    assert bool(torch.isfinite(omega(torch.tensor([0.0, 1.0]), 0.0)).all())


@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_omega_of_log_has_a_finite_gradient_where_the_vote_underflows(gamma):
    z = torch.tensor([[0.0, 400.0]], requires_grad=True)
    omega_of_log(z.log_softmax(1), gamma).sum().backward()
    assert bool(torch.isfinite(z.grad).all())


def test_of_label_picks_each_graphs_own_class():
    values = torch.arange(12.0).reshape(2, 2, 3)
    assert of_label(values, torch.tensor([2, 0])).tolist() == [[2.0, 5.0], [6.0, 9.0]]
    assert of_label(values, torch.tensor([[2], [0]])).tolist() == [[2.0, 5.0], [6.0, 9.0]]


def test_mean_vote_is_the_weighted_average():
    spurious = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    assert mean_vote(spurious, torch.tensor([0.75, 0.25])).tolist() == [[[0.75, 0.25]]]
