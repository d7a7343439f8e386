"""Central moment discrepancy against hand-worked numbers and a loop."""

import numpy as np
import pytest

from plugins.analyses.cmd import CentralMomentDiscrepancy


def by_loop(x, y, width, moments):
    """The definition of Zellinger et al., ICLR 2017, one coordinate and one moment at a time."""
    total = 0.0
    for k in range(1, moments + 1):
        squares = 0.0
        for column in range(x.shape[1]):
            a, b = x[:, column].tolist(), y[:, column].tolist()
            mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
            if k == 1:
                squares += (mean_a - mean_b) ** 2
            else:
                moment_a = sum((v - mean_a) ** k for v in a) / len(a)
                moment_b = sum((v - mean_b) ** k for v in b) / len(b)
                squares += (moment_a - moment_b) ** 2
        total += squares**0.5 / width**k
    return total


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 2, (50, 4)), rng.uniform(-1, 1, (30, 4))


def test_equals_the_definition_worked_by_a_loop(samples):
    x, y = samples
    assert CentralMomentDiscrepancy().distance(x, y, 3.0) == pytest.approx(by_loop(x, y, 3.0, 5), rel=1e-12)
    assert CentralMomentDiscrepancy(moments=2).distance(x, y, 3.0) == pytest.approx(by_loop(x, y, 3.0, 2), rel=1e-12)


def test_two_points_by_hand():
    x, y = np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]])
    # means .5 and 0; central moments of x: 1/4, 0, 1/16, 0
    assert CentralMomentDiscrepancy().distance(x, y, 1.0) == pytest.approx(0.5 + 0.25 + 0.0625)


def test_is_zero_for_equal_samples_and_symmetric(samples):
    x, y = samples
    measure = CentralMomentDiscrepancy()
    assert measure.distance(x, x, 3.0) == 0.0
    assert measure.distance(x, y, 3.0) == measure.distance(y, x, 3.0)


def test_sees_a_shift_of_the_mean_which_the_form_without_the_mean_term_does_not(samples):
    x, _ = samples
    shifted = x + 0.3
    assert CentralMomentDiscrepancy().distance(x, shifted, 3.0) == pytest.approx(0.3 * 2 / 3.0)  # four columns: sqrt(4)
    assert CentralMomentDiscrepancy(mean_term=False).distance(x, shifted, 3.0) == pytest.approx(0.0, abs=1e-12)


def test_does_not_depend_on_the_scale_of_the_network(samples):
    x, y = samples
    measure = CentralMomentDiscrepancy()
    assert measure.distance(10 * x, 10 * y, 30.0) == pytest.approx(measure.distance(x, y, 3.0))


def test_constant_embeddings_do_not_divide_by_zero():
    same = np.zeros((5, 3))
    assert CentralMomentDiscrepancy().distance(same, same, 0.0) == 0.0
