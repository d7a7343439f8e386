"""GroupDRO: its weights by hand, over many steps, and with absent groups."""

import math

import pytest
import torch
from learner_kit import graphs, make, same, train

from harness import environment_mean
from plugins.baselines.groupdro import GroupDRO


def steps(learner, risks, count=1, present=None):
    ids = torch.arange(len(risks)) if present is None else torch.tensor(present)
    for _ in range(count):
        learner.log_q = learner.updated(ids, torch.tensor(risks))
    return learner.log_q.exp()


def test_two_groups_by_hand():
    assert steps(make(GroupDRO), [1.0, 2.0])[1].item() == pytest.approx(1 / (1 + math.exp(-0.01)), abs=1e-6)


def test_equal_losses_leave_the_weights_uniform():
    assert steps(make(GroupDRO, envs=4), [0.7] * 4, 50).tolist() == pytest.approx([0.25] * 4)


def test_the_ratio_grows_with_the_difference_of_the_losses():
    q = steps(make(GroupDRO, step_size=0.1), [1.0, 1.5], 20)
    assert (q[1] / q[0]).item() == pytest.approx(math.exp(0.1 * 20 * 0.5), rel=1e-4)


def test_the_weights_stay_finite_and_sum_to_one():
    q = steps(make(GroupDRO, step_size=1.0), [0.0, 50.0], 2000)
    assert q.tolist() == pytest.approx([0.0, 1.0])


def test_an_absent_group_keeps_its_share_of_the_others():
    learner = make(GroupDRO, envs=3)
    q = steps(learner, [5.0], 10, present=[0])
    assert q[1].item() == q[2].item()
    assert q[0] > q[1]


@pytest.mark.parametrize("renormalise", [False, True])
def test_step_size_zero_is_the_mean_over_groups(renormalise):
    learner = make(GroupDRO, step_size=0.0, renormalise=renormalise)
    batch = next(iter(graphs(12).batches(12)))
    expected = environment_mean(learner.risk(learner(batch), batch), batch.env).mean()
    torch.testing.assert_close(learner.loss(batch)["worst"], expected)


def test_the_weights_used_are_the_updated_ones_and_carry_no_gradient():
    learner = make(GroupDRO, step_size=5.0)
    batch = next(iter(graphs(12).batches(12)))
    risks = environment_mean(learner.risk(learner(batch), batch), batch.env)
    q = (5.0 * risks.detach()).softmax(0)
    torch.testing.assert_close(learner.loss(batch)["worst"], q @ risks)
    assert not learner.pending.requires_grad


def test_the_weights_are_kept_between_batches_and_saved_unless_stateless():
    packed = graphs(12)
    kept, forgotten = make(GroupDRO, step_size=0.5), make(GroupDRO, step_size=0.5, stateless=True)
    left, right = train(kept, packed), train(forgotten, packed)
    assert not same(left, right, only="head")
    ids, risks = torch.arange(2), torch.tensor([1.0, 2.0])
    fresh = make(GroupDRO, step_size=0.5).updated(ids, risks)
    torch.testing.assert_close(forgotten.updated(ids, risks), fresh)
    assert not torch.allclose(kept.updated(ids, risks), fresh)


def test_groups_may_be_pairs_of_environment_and_class():
    learner = make(GroupDRO, groups="environment-class")
    batch = next(iter(graphs(12).batches(12)))
    assert len(learner.log_q) == 6
    assert learner.group_ids(batch).tolist() == (3 * batch.env + batch.y).tolist()


def test_a_batch_without_environments_is_a_live_zero():
    learner = make(GroupDRO)
    batch = next(iter(graphs(4).batches(4)))
    batch.env = torch.full_like(batch.env, -1)
    loss = learner.loss(batch)["worst"]
    loss.backward()
    assert loss.item() == 0.0
