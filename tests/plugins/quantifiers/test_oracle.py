"""Perfect votes: counted shares, and what weights made of them do to the agreement of label and base."""

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from plugins.decorrelators._targets import of_label, omega
from plugins.quantifiers.oracle import Oracle

BIAS = 0.6


def biased():
    """(n, 1) bases and (n,) labels of three classes: .6 of each class on its own base, .2 on each other."""
    shares = np.full((3, 3), 20) + np.diag([40, 40, 40])
    y, base = np.divmod(np.repeat(np.arange(9), shares.flatten()), 3)
    return base[:, None].astype(float), y


def test_votes_are_the_counted_shares_without_smoothing():
    base = np.array([5.0, 5.0, 5.0, 5.0, -1.0, -1.0])[:, None]
    fitted = Oracle().fit(base, np.array([0, 0, 0, 2, 1, 1]), 4)
    expected = [[0.75, 0, 0.25, 0], [0, 1, 0, 0]]
    assert fitted.predict(np.array([[5.0], [-1.0]])).tolist() == expected
    assert fitted.training is None
    assert fitted.flags == []


@pytest.mark.parametrize("base", [-9.0, 1.0, 9.0])
def test_a_base_that_no_training_graph_has_gets_the_shares_of_the_classes(base):
    fitted = Oracle().fit(np.array([[0.0], [0.0], [2.0], [2.0]]), np.array([0, 0, 0, 1]), 2)
    assert fitted.predict(np.array([[base], [0.0]])).tolist() == [[0.75, 0.25], [1, 0]]


def weighted_agreement(gamma):
    """The share of the weight of Eqn. 19 that lies on graphs whose base goes with their label."""
    base, y = biased()
    votes = torch.from_numpy(Oracle().fit(base, y, 3).predict(base)).unsqueeze(1)
    weight = omega(of_label(votes, torch.from_numpy(y)).squeeze(1), gamma).numpy()
    return weight[base[:, 0] == y].sum() / weight.sum()


@pytest.mark.parametrize("gamma", [0.01, 0.5, 0.9])
def test_the_weighted_agreement_of_label_and_base_is_that_of_the_formula(gamma):
    agree, miss = BIAS * (1 - BIAS**gamma), 2 * 0.2 * (1 - 0.2**gamma)
    assert weighted_agreement(gamma) == pytest.approx(agree / (agree + miss), rel=1e-9)


def test_with_the_gamma_that_balances_the_weights_the_base_says_nothing_of_the_label():
    gamma = brentq(lambda g: BIAS * (1 - BIAS**g) - 0.2 * (1 - 0.2**g), 0.01, 0.5)
    assert weighted_agreement(gamma) == pytest.approx(1 / 3, rel=1e-9)
    assert weighted_agreement(0.9) > 0.34
