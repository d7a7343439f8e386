"""EIIL's split of the training set: the toy with a known answer, the objective, degenerate references."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from learner_kit import MULTICLASS, MULTITASK, graphs

from harness.nn import scale_gradient
from harness.randomness import generator
from plugins.environments.eiil import EIIL, objective, task_of

LN4 = math.log(4)


def component(seed=0, **values):
    made = EIIL(**values)
    made.rng = generator(seed, "environment")
    return made


def toy(n=2000, agreement=0.8):
    """Labels, a bit that agrees with them for 80 %, and a calibrated reference that reads the bit alone."""
    y = torch.arange(n) % 2
    agrees = torch.arange(n) < agreement * n
    bit = torch.where(agrees, y, 1 - y)
    logit = (2.0 * bit - 1) * LN4
    logits = torch.stack([torch.zeros(n), logit], 1)
    return y, agrees, logits


@dataclass
class Labelled:
    """All of the training graphs that the split looks at."""

    y: torch.Tensor

    def __len__(self):
        return len(self.y)


def split(logits, y, **values):
    made = component(**values)
    return made.assign(Labelled(y), {}, {"reference": SimpleNamespace(logits=logits)}), made


def same_partition(left, right):
    return torch.equal(left, right) or torch.equal(left, 1 - right)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_split_is_agreement_with_the_bit(seed):
    y, agrees, logits = toy()
    ids, made = split(logits, y, seed=seed)
    assert same_partition(ids, agrees.long())
    assert made.flags == []


def test_the_authors_step_and_a_short_ascent_reach_the_same_split():
    y, agrees, logits = toy(400)
    assert same_partition(split(logits, y, steps=200)[0], agrees.long())
    assert same_partition(split(logits, y, lr=0.001, steps=10000)[0], agrees.long())


def test_objective_of_the_toy():
    y, agrees, logits = toy()
    gradient = scale_gradient(logits.double(), y, MULTICLASS)
    half = torch.full_like(gradient, 0.5)
    assert objective(half, gradient).item() == pytest.approx(0.25 * gradient.mean().item() ** 2, abs=1e-15)
    assert objective(half, gradient).item() == pytest.approx(0.0, abs=1e-12), "the reference is calibrated"
    assert objective(agrees.double(), gradient).item() == pytest.approx((0.8 * 0.2 * LN4) ** 2, rel=1e-6)
    assert objective(agrees.double(), gradient).item() == pytest.approx(0.0492, abs=5e-5)


def test_a_constant_membership_of_one_half_has_a_quarter_of_the_squared_mean():
    gradient = torch.randn(50, generator=generator(0, "g"), dtype=torch.float64)
    expected = 0.25 * gradient.mean().item() ** 2
    assert objective(torch.full_like(gradient, 0.5), gradient).item() == pytest.approx(expected)


def test_the_split_does_not_depend_on_how_often_the_data_are_there():
    y, agrees, logits = toy(200)
    once, often = split(logits, y)[0], split(logits.repeat(50, 1), y.repeat(50))[0]
    assert same_partition(once, agrees.long())
    assert same_partition(often, agrees.repeat(50).long())


def test_tiny_derivatives_are_split_too():
    """Without the factor n, the ascent's gradients would drown in Adam's epsilon."""
    gradient = torch.cat([torch.full((4000,), 2e-4), torch.full((4000,), -2e-4)]).double()
    ids = component().split(gradient)
    assert same_partition(ids, (gradient > 0).long())


def test_a_shift_of_the_logits_changes_nothing():
    """The derivative is of the loss, not of the label's negative logit."""
    logits, y = torch.randn(60, 3, generator=generator(0, "z")), torch.arange(60) % 3
    assert torch.equal(split(logits, y)[0], split(logits.double() + 7.0, y)[0])


def test_the_reference_and_the_data_stay_as_they_are():
    y, _, logits = toy(100)
    before = logits.clone(), y.clone()
    state = torch.get_rng_state()
    split(logits, y)
    assert torch.equal(logits, before[0])
    assert torch.equal(y, before[1])
    assert torch.equal(state, torch.get_rng_state())


def test_a_reference_that_fitted_everything_gives_random_halves():
    y = torch.arange(40) % 2
    ids, made = split(torch.nn.functional.one_hot(y, 2) * 50.0, y)
    assert torch.bincount(ids).tolist() == [20, 20]
    assert len(made.flags) == 1
    assert "fitted nearly every training graph" in made.flags[0]


def test_a_split_with_hardly_any_graph_on_one_side_is_random():
    made = component()
    ids = made.split(torch.ones(200, dtype=torch.float64))
    assert torch.bincount(ids).tolist() == [100, 100]
    assert "0.0% of the graphs" in made.flags[0]


def test_graphs_without_a_label_belong_to_no_environment():
    packed = graphs(20, task=MULTITASK)
    packed.y[3], packed.y[5, 0] = math.nan, math.nan
    logits = torch.randn(20, 3, generator=generator(0, "z"))
    assert task_of(logits, packed.y).kind == "multitask"
    ids = component().assign(packed, {}, {"reference": SimpleNamespace(logits=logits)})
    assert ids[3] == -1
    assert (ids >= 0).sum() == 19


def test_the_reference_is_an_early_stopped_erm():
    declared = EIIL.upstream["reference"]
    assert (declared["kind"], declared["name"]) == ("baseline", "erm")
    assert declared["train"] == {"epochs": "$ref_epochs"}
    assert declared["checkpoint"] == "$ref_checkpoint"
