"""The supervised contrastive loss against values worked out by hand."""

import math

import pytest
import torch

from harness import supervised_contrastive


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
