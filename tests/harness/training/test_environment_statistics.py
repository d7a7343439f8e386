"""Environment ids that are refused, and statistics of environments against NumPy in float64 and by hand."""

import re

import numpy as np
import pytest
import torch

from harness import Task
from harness.nn import (
    environment_mean,
    environment_moments,
    environment_size,
    environment_variance,
    labelled_environments,
    position_in_environment,
)
from harness.nn.environments import check_ids

ENV = [4, -1, 0, 4, 7, 0, 4, -1, 0, 4]
COUNTED = [0, 4]


@pytest.fixture
def values():
    """Rows of ten graphs: two of no environment, one alone in its own, and two environments of three and four."""
    return torch.randn(10, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 100


def rows(values, e):
    return values.numpy()[np.array(ENV) == e]


def test_means_agree_with_numpy(values):
    expected = np.stack([rows(values, e).mean(0) for e in (0, 4, 7)])
    np.testing.assert_allclose(environment_mean(values, torch.tensor(ENV)), expected, rtol=1e-13)


def test_variances_agree_with_numpy(values):
    expected = np.stack([rows(values, e).var(0, ddof=1) for e in COUNTED])
    np.testing.assert_allclose(environment_variance(values, torch.tensor(ENV)), expected, rtol=1e-10)


def test_moments_agree_with_numpy(values):
    means, covariances = environment_moments(values, torch.tensor(ENV))
    np.testing.assert_allclose(means, np.stack([rows(values, e).mean(0) for e in COUNTED]), rtol=1e-13)
    expected = np.stack([np.cov(rows(values, e).T) for e in COUNTED])
    np.testing.assert_allclose(covariances, expected, rtol=1e-10, atol=1e-12)


def test_variances_are_the_diagonals_of_the_covariances(values):
    env = torch.tensor(ENV)
    diagonal = environment_moments(values, env)[1].diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(environment_variance(values, env), diagonal)


def test_large_features_do_not_cost_precision():
    x = torch.randn(64, 2, generator=torch.Generator().manual_seed(1))
    env = torch.arange(64) % 2
    far = environment_variance(x + 1000, env)
    torch.testing.assert_close(far, environment_variance(x.double(), env).float(), rtol=1e-3, atol=0)


@pytest.mark.parametrize("env", [[-1, -1, -1], [0, 1, 2], [-1, 3, -1]])
def test_without_an_environment_of_two_graphs_there_are_no_spreads(env):
    values = torch.randn(3, 2, requires_grad=True)
    means, covariances = environment_moments(values, torch.tensor(env))
    assert means.shape == (0, 2)
    assert covariances.shape == (0, 2, 2)
    assert environment_variance(values, torch.tensor(env)).shape == (0, 2)


@pytest.mark.parametrize("statistic", [environment_variance, lambda v, e: environment_moments(v, e)[1]])
def test_graphs_that_do_not_count_get_no_gradient(values, statistic):
    values.requires_grad_()
    statistic(values, torch.tensor(ENV)).square().sum().backward()
    live = (values.grad != 0).any(1).tolist()
    assert live == [e in COUNTED for e in ENV]


def test_gradients_agree_with_finite_differences():
    values = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    env = torch.tensor([0, 1, 0, 1, 1])
    assert torch.autograd.gradcheck(lambda v: environment_variance(v, env), values)
    assert torch.autograd.gradcheck(lambda v: environment_moments(v, env), values)


def test_sizes_and_positions():
    env = torch.tensor([2, 0, 2, 2, 0, 5])
    assert environment_size(env).tolist() == [3, 2, 3, 3, 2, 1]
    assert position_in_environment(env).tolist() == [0, 0, 1, 2, 1, 0]


def test_graphs_without_any_label_are_in_no_environment():
    env, missing = torch.tensor([3, 0, 1, -1]), torch.nan
    y = torch.tensor([[1.0, 0.0], [missing, 1.0], [missing, missing], [1.0, 1.0]])
    assert labelled_environments(env, y, Task("multitask", 2, num_tasks=2, metric="rocauc")).tolist() == [3, 0, -1, -1]
    assert labelled_environments(env, torch.tensor([0, 1, 2, 0]), Task("multiclass", 3)).tolist() == [3, 0, 1, -1]


@pytest.mark.parametrize(
    ("ids", "number", "message"),
    [
        (
            torch.tensor([0, 10**9, 0]),
            None,
            "2 environments have ids up to 1000000000; expected 0, 1",
        ),
        (torch.tensor([1, 1, 2]), None, "2 environments have ids up to 2; expected 0, 1, 2 … without a gap"),
        (torch.tensor([0.0, 1.0, 0.0]), None, "the ids are torch.float32 of shape"),
        ([0, 1, 0], None, "the ids are list for 3 graphs; expected a tensor of torch.int64"),
        (torch.tensor([0, 1]), None, "of shape (2,) for 3 graphs; expected a tensor of torch.int64, one id per graph"),
        (torch.tensor([[0], [1], [0]]), 2, "of shape (3, 1) for 3 graphs"),
        (torch.tensor([-1, -1, -1]), None, "0 environments have ids up to -1"),
        (torch.tensor([0, -2, 1]), None, "there are ids from -2 to 1; expected 0, 1, 2 …, or -1 for none"),
        (torch.tensor([0, 2, 1]), 2, "there are ids from 0 to 2; expected 0 to 1, or -1 for none"),
    ],
)
def test_ids_that_count_no_environments_are_refused(ids, number, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        check_ids(ids, 3, number)


def test_ids_that_are_counted_from_0_pass():
    check_ids(torch.tensor([1, -1, 0]), 3)
    check_ids(torch.tensor([-1, -1, 1]), 3, number=3)  # a batch need not have all environments, or any
