"""GroupDRO: its weights by hand, over many steps, and with absent groups."""

import math

import pytest
import torch
from learner_kit import MULTITASK, graphs, make, same, train

from harness import UserError
from harness.hparams import holds
from harness.nn import environment_mean
from plugins.baselines.groupdro import GroupDRO


def steps(learner, risks, count=1, present=None):
    ids = torch.arange(len(risks)) if present is None else torch.tensor(present)
    for _ in range(count):
        learner.log_q = learner.updated(ids, torch.tensor(risks))
    return learner.log_q.exp()


def test_the_ratio_grows_with_the_difference_of_the_losses():
    q = steps(make(GroupDRO, step_size=0.1), [1.0, 1.5], 20)
    assert (q[1] / q[0]).item() == pytest.approx(math.exp(0.1 * 20 * 0.5), rel=1e-4)


def test_the_weights_stay_finite_and_sum_to_one():
    learner = make(GroupDRO)
    steps(learner, [0.0, 50.0], 100)
    gap = (learner.log_q[1] - learner.log_q[0]).item()
    assert gap == pytest.approx(100 * 0.01 * 50, rel=1e-4)
    learner.log_q = torch.tensor([-gap * 999, 0.0])  # 99,900 steps: the gap grows by the same amount in each
    q = steps(learner, [0.0, 50.0], 100)
    assert (learner.log_q[1] - learner.log_q[0]).item() == pytest.approx(100_000 * 0.01 * 50, rel=1e-4)
    assert q.tolist() == pytest.approx([0.0, 1.0])
    assert bool(torch.isfinite(learner.log_q).all())


def test_an_absent_group_keeps_its_share_of_the_others():
    learner = make(GroupDRO, envs=3)
    q = steps(learner, [5.0], 10, present=[0])
    assert q[1].item() == q[2].item()
    assert q[0] > q[1]


@pytest.mark.parametrize(("renormalise", "groups"), [(False, 2), (True, 5)])
def test_step_size_zero_is_the_mean_over_the_groups_present(renormalise, groups):
    learner = make(GroupDRO, envs=groups, step_size=0.0, renormalise=renormalise)
    batch = next(iter(graphs(12, envs=2).batches(12)))
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


def test_the_weights_are_a_buffer_that_a_checkpoint_restores():
    learner = make(GroupDRO, step_size=0.5)
    saved = train(learner, graphs(12))
    assert saved["log_q"].exp().sum().item() == pytest.approx(1.0)
    assert not torch.equal(saved["log_q"], make(GroupDRO).log_q)
    restored = make(GroupDRO, step_size=0.5, seed=1)
    restored.load_state_dict(saved)
    assert torch.equal(restored.log_q, saved["log_q"])
    batch = next(iter(graphs(12).batches(12)))
    assert torch.equal(restored.eval().loss(batch)["worst"], learner.eval().loss(batch)["worst"])


@pytest.mark.parametrize("values", [{}, {"renormalise": True}, {"renormalise": True, "stateless": True}])
def test_groups_are_weighed_over_batches_of_one_group_unless_weights_are_of_the_batch_alone(values):
    batch, learner = next(iter(graphs().batches(8))), make(GroupDRO, step_size=1.0, **values)
    batch.env = torch.ones_like(batch.env)
    mean = learner.risk(learner(batch), batch).mean()
    weighed = (learner.loss(batch)["worst"] / mean).detach()
    q = torch.tensor([1.0, mean.detach().exp()])  # from equal weights
    expected = 1.0 if values else float(q[1] / q.sum())
    assert float(weighed) == pytest.approx(expected, rel=1e-5)
    assert holds(GroupDRO.compares_over_batches, learner.values) == (not values)


def test_computing_a_loss_does_not_move_the_weights_and_a_step_does():
    learner = make(GroupDRO, step_size=0.5)
    batch, start = next(iter(graphs(12).batches(12))), learner.log_q.clone()
    learner.loss(batch)
    assert torch.equal(learner.log_q, start)
    learner.training_step(batch, learner.optimizers())
    assert not torch.equal(learner.log_q, start)


def test_stateless_and_renormalised_is_a_softmax_over_the_groups_present():
    learner = make(GroupDRO, envs=4, step_size=3.0, stateless=True, renormalise=True)
    optimizers, batch = learner.optimizers(), next(iter(graphs(12, envs=2).batches(12)))
    for _ in range(3):
        learner.training_step(batch, optimizers)
    learner.eval()
    risks = environment_mean(learner.risk(learner(batch), batch), batch.env)
    expected = (3.0 * risks.detach()).softmax(0) @ risks
    torch.testing.assert_close(learner.loss(batch)["worst"], expected)


def test_multi_task_graphs_have_no_class_to_be_grouped_by():
    with pytest.raises(UserError, match="no single class"):
        make(GroupDRO, task=MULTITASK, groups="environment-class")
