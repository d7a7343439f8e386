"""DANN: the schedule of the reversal, and who gets which gradient."""

import pytest
import torch
from learner_kit import MULTITASK, gradients, graphs, make, reached

from plugins.baselines.dann import DANN, schedule


def one_batch():
    return next(iter(graphs(12).batches(12)))


@pytest.mark.parametrize(("progress", "alpha"), [(0.0, 0.0), (0.5, 0.98661), (1.0, 0.99991)])
def test_schedule(progress, alpha):
    assert schedule(progress) == pytest.approx(alpha, abs=1e-5)


def test_progress_counts_the_steps_of_the_whole_training():
    learner = make(DANN)
    learner.step = learner.total_steps // 2
    assert learner.reversal() == pytest.approx(schedule(0.5))
    assert make(DANN, alpha=0.2).reversal() == 0.2


def test_at_alpha_zero_only_the_domain_head_learns_from_the_domain_loss():
    learner, batch = make(DANN), one_batch()
    found = gradients(learner, learner.loss(batch)["domain"])
    assert reached(found, "domain_head")
    assert not reached(found, "backbone")


def test_the_encoder_gets_minus_alpha_times_the_gradient():
    batch, found = one_batch(), {}
    for alpha in (0.5, 1.0):
        learner = make(DANN, alpha=alpha)
        learner.loss(batch)["domain"].backward()
        found[alpha] = learner.backbone.linear[0].weight.grad
    torch.testing.assert_close(found[0.5] * 2, found[1.0])
    learner = make(DANN)
    logits = learner.domain_head(learner.embed(batch))
    torch.nn.functional.cross_entropy(logits, batch.env).backward()
    torch.testing.assert_close(found[1.0], -learner.backbone.linear[0].weight.grad)


def test_environments_out_of_range_are_refused():
    learner, batch = make(DANN), one_batch()
    batch.env = batch.env + 2
    with pytest.raises(IndexError):
        learner.loss(batch)


def test_graphs_without_environment_are_left_out():
    learner, batch = make(DANN), one_batch()
    batch.env = torch.full_like(batch.env, -1)
    assert learner.loss(batch)["domain"].item() == 0.0


def test_graphs_without_any_label_are_left_out():
    packed = graphs(6, task=MULTITASK)
    learner = make(DANN, task=MULTITASK).eval()
    expected = learner.loss(packed.batch(torch.arange(5)))["domain"].item()
    packed.y[5] = torch.nan
    packed.env[5] = 1 - packed.env[:5].mode().values
    assert learner.loss(packed.batch(torch.arange(6)))["domain"].item() == pytest.approx(expected, rel=1e-6)
