"""Per-graph losses and environment means, by hand and against automatic differentiation."""

import pytest
import torch
import torch.nn.functional as F

from harness import Task, environment_mean, per_sample_loss, scale_gradient

MULTICLASS, MULTITASK = Task("multiclass", 3), Task("multitask", 2, num_tasks=3, metric="rocauc")


@pytest.fixture
def labelled():
    """Multi-task logits and labels: one row in full, one in part, one without any label."""
    z = torch.tensor([[0.5, -1.0, 2.0], [1.0, 3.0, -2.0], [0.1, 0.2, 0.3]])
    y = torch.tensor([[1.0, 0.0, 1.0], [torch.nan, 1.0, torch.nan], [torch.nan] * 3])
    return z, y


def test_multitask_rows_average_their_labelled_tasks(labelled):
    z, y = labelled
    full = F.binary_cross_entropy_with_logits(z[0], y[0]).item()
    part = F.softplus(torch.tensor(-3.0)).item()
    assert per_sample_loss(z, y, MULTITASK).tolist() == pytest.approx([full, part, 0.0], rel=1e-6)


def test_missing_labels_do_not_reach_the_gradient(labelled):
    z, y = labelled
    z.requires_grad_()
    per_sample_loss(z, y, MULTITASK).sum().backward()
    assert bool(torch.isfinite(z.grad).all())
    assert (z.grad != 0).tolist() == [[True] * 3, [False, True, False], [False] * 3]


@pytest.mark.parametrize("size", [1, 2, 7])
def test_integer_labels_may_have_a_trailing_axis(size):
    z, y = torch.linspace(-1, 1, 3 * size).reshape(size, 3), torch.arange(size) % 3
    expected = F.cross_entropy(z, y, reduction="none")
    assert torch.equal(per_sample_loss(z, y.unsqueeze(1), MULTICLASS), expected)
    assert torch.equal(scale_gradient(z, y.unsqueeze(1), MULTICLASS), scale_gradient(z, y, MULTICLASS))


def test_the_multitask_scale_gradient_is_the_derivative_by_the_scale(labelled):
    z, y = labelled
    w = torch.ones(3, 1, requires_grad=True)
    (expected,) = torch.autograd.grad(per_sample_loss(w * z, y, MULTITASK).sum(), w)
    torch.testing.assert_close(scale_gradient(z, y, MULTITASK), expected.squeeze(1))


def test_environment_means_are_in_the_order_of_their_ids():
    values = torch.tensor([1.0, 2.0, 3.0, 10.0])
    assert environment_mean(values, torch.tensor([5, 2, 5, 2])).tolist() == [6.0, 2.0]
    rows = environment_mean(values.unsqueeze(1).repeat(1, 2), torch.tensor([0, 0, 1, 1]))
    assert rows.tolist() == [[1.5, 1.5], [6.5, 6.5]]


def test_negative_ids_and_small_environments_are_left_out():
    values, env = torch.tensor([1.0, 2.0, 3.0, 10.0]), torch.tensor([-1, 0, 0, 1])
    assert environment_mean(values, env).tolist() == [2.5, 10.0]
    assert environment_mean(values, env, at_least=2).tolist() == [2.5]
    assert environment_mean(values, torch.full((4,), -1)).tolist() == []


def test_environment_means_are_live():
    values = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    environment_mean(values, torch.tensor([0, 0, 1])).sum().backward()
    assert values.grad.tolist() == [0.5, 0.5, 1.0]
