"""Per-graph losses and environment means, by hand and against automatic differentiation."""

import pytest
import torch
import torch.nn.functional as F

from harness import Task
from harness.nn import environment_mean, generalized_cross_entropy, per_sample_loss, reverse_gradient, scale_gradient

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


class TestGeneralizedCrossEntropy:
    """(1 - p_y^q) / q, of Zhang and Sabuncu; learning from failure weighs cross-entropy by p_y^q instead."""

    Z, Y = torch.linspace(-2, 2, 12, dtype=torch.float64).reshape(4, 3).sin() * 3, torch.tensor([0, 1, 2, 0])

    @pytest.mark.parametrize("q", [0.1, 0.5, 0.7, 1.0])
    def test_it_is_the_formula(self, q):
        p = self.Z.softmax(1)[torch.arange(4), self.Y]
        torch.testing.assert_close(generalized_cross_entropy(self.Z, self.Y, q), (1 - p**q) / q)
        torch.testing.assert_close(generalized_cross_entropy(self.Z, self.Y.unsqueeze(1), q), (1 - p**q) / q)

    def test_small_q_is_cross_entropy_and_one_is_the_absolute_error(self):
        cross = F.cross_entropy(self.Z, self.Y, reduction="none")
        torch.testing.assert_close(generalized_cross_entropy(self.Z, self.Y, 1e-9), cross)
        p = self.Z.softmax(1)[torch.arange(4), self.Y]
        torch.testing.assert_close(generalized_cross_entropy(self.Z, self.Y, 1.0), 1 - p)

    @pytest.mark.parametrize("q", [0.3, 0.7])
    def test_the_weighted_form_has_q_times_its_gradient(self, q):
        """The gradient of q * sg[p_y^q] * CE, as DisC's code has it, is exactly q times this one's."""
        z = self.Z.clone().requires_grad_()
        (own,) = torch.autograd.grad(generalized_cross_entropy(z, self.Y, q).sum(), z)
        cross = F.cross_entropy(z, self.Y, reduction="none")
        weighted = q * (-cross).exp().detach() ** q * cross
        (other,) = torch.autograd.grad(weighted.sum(), z)
        torch.testing.assert_close(other, q * own)

    def test_its_gradient_grows_with_confidence(self):
        """Relative to cross-entropy's it is p_y^q: 0.929 at p_y = 0.9 and 0.200 at 0.1, for q = 0.7."""
        for p, expected in ((0.9, 0.929), (0.1, 0.200)):
            z = torch.tensor([[p, 1 - p]], dtype=torch.float64).log().requires_grad_()
            y = torch.tensor([0])
            (own,) = torch.autograd.grad(generalized_cross_entropy(z, y, 0.7).sum(), z)
            (cross,) = torch.autograd.grad(F.cross_entropy(z, y), z)
            assert (own / cross)[0, 0].item() == pytest.approx(expected, abs=1e-3)

    def test_certain_and_wrong_predictions_are_finite(self):
        z = torch.tensor([[200.0, -200.0], [-200.0, 200.0]], requires_grad=True)
        loss = generalized_cross_entropy(z, torch.tensor([0, 0]), 0.7)
        loss.sum().backward()
        assert loss.tolist() == pytest.approx([0.0, 1 / 0.7])
        assert bool(z.grad.isfinite().all())


class TestReverseGradient:
    """Identity one way, -alpha times the gradient the other."""

    @pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0])
    def test_forward_is_the_identity_and_backward_is_reversed(self, alpha):
        x = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3).requires_grad_()
        assert torch.equal(reverse_gradient(x, alpha), x)
        (plain,) = torch.autograd.grad((x.sin() * 3).sum(), x)
        (found,) = torch.autograd.grad((reverse_gradient(x, alpha).sin() * 3).sum(), x)
        torch.testing.assert_close(found, -alpha * plain)

    def test_finite_differences_see_the_identity(self):
        """What the loss really does to x has the opposite sign of the gradient that x gets."""
        x, step = torch.tensor([0.3], dtype=torch.float64, requires_grad=True), 1e-6
        (found,) = torch.autograd.grad(reverse_gradient(x, 0.5).exp().sum(), x)
        slope = (reverse_gradient(x + step, 0.5).exp() - reverse_gradient(x - step, 0.5).exp()) / (2 * step)
        assert found.item() == pytest.approx(-0.5 * slope.item(), rel=1e-6)

    def test_what_comes_after_it_learns_as_usual(self):
        x, w = torch.ones(1, requires_grad=True), torch.full((1,), 2.0, requires_grad=True)
        (reverse_gradient(x) * w).backward()
        assert (x.grad.item(), w.grad.item()) == (-2.0, 1.0)
