"""What a learner's loss terms may be, and how they are summed."""

import pytest
import torch

from harness import Baseline, hparam


class Weighed(Baseline):
    """Two terms, each with a weight."""

    name = "weighed"
    first: float = hparam(1.0, weight_of="a")
    second: float = hparam(1.0, weight_of="b")


@pytest.mark.parametrize("returned", [torch.tensor(1.0), {}, None])
def test_anything_but_named_terms_is_refused_with_what_is_wanted(returned):
    with pytest.raises(TypeError, match=r'Weighed\.loss returned \w+; .* \{"erm"'):
        Weighed().total(returned)


def test_the_total_is_the_weighted_sum():
    assert Weighed(first=2.0, second=0.5).total({"a": torch.tensor(3.0), "b": torch.tensor(4.0)}).item() == 8.0


def test_a_term_of_weight_zero_is_absent():
    total = Weighed(second=0.0).total({"a": torch.tensor(3.0), "b": torch.tensor(float("nan"))})
    assert total.item() == 3.0


def test_weights_that_leave_nothing_are_refused_by_name():
    with pytest.raises(ValueError, match=r"Weighed: every loss term \(a, b\) has weight zero"):
        Weighed(first=0.0, second=0.0).total({"a": torch.tensor(3.0), "b": torch.tensor(4.0)})
