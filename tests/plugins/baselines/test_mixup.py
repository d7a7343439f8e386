"""MixUp: its limits, soft labels, missing labels and its own draws."""

import pytest
import torch
import torch.nn.functional as F
from learner_kit import MULTITASK, graphs, make

from plugins.baselines.mixup import MixUp

SHIFT = torch.tensor([1, 2, 3, 4, 5, 0])


def one_batch(n=6, **kwargs):
    return next(iter(graphs(n, **kwargs).batches(n)))


def mixed(learner, batch, lam, partner):
    return learner.mixed(learner.embed(batch), batch.y, lam, partner)


def test_it_equals_cross_entropy_against_the_mixed_labels():
    batch, learner = one_batch(), make(MixUp)
    h, lam = learner.embed(batch), 0.3
    target = lam * F.one_hot(batch.y, 3) + (1 - lam) * F.one_hot(batch.y[SHIFT], 3)
    logits = learner.head(lam * h + (1 - lam) * h[SHIFT])
    torch.testing.assert_close(mixed(learner, batch, lam, SHIFT), F.cross_entropy(logits, target))


def test_the_share_of_mixed_batches_and_the_mean_of_lam():
    learner, batch, seen = make(MixUp, probability=0.4), one_batch(), []
    h = learner.embed(batch).detach()
    learner.embed = lambda _: h
    learner.mixed = lambda h, _labels, lam, _partner: seen.append(lam) or h.sum()
    for _ in range(2000):
        learner.loss(batch)
    assert len(seen) / 2000 == pytest.approx(0.4, abs=0.04)
    assert sum(seen) / len(seen) == pytest.approx(0.5, abs=0.04)


def test_smoothing_gives_the_smoothed_targets():
    learner, batch = make(MixUp, smoothing=0.1), one_batch()
    logits = learner(batch)
    target = (F.one_hot(batch.y, 3) + 0.1 / 3) / 1.1
    torch.testing.assert_close(learner.smoothed(logits, batch.y).mean(), F.cross_entropy(logits, target))


def test_a_task_counts_where_both_graphs_have_its_label():
    learner, batch = make(MixUp, task=MULTITASK), one_batch(task=MULTITASK)
    batch.y[2, 1] = torch.nan
    h = learner.embed(batch)
    loss = learner.mixed(h, batch.y, 0.3, SHIFT)
    logits = learner.head(0.3 * h + 0.7 * h[SHIFT])
    both = ~(batch.y.isnan() | batch.y[SHIFT].isnan())

    def one_side(y):
        each = F.binary_cross_entropy_with_logits(logits, y.nan_to_num(), reduction="none") * both
        return each.sum() / both.sum()

    torch.testing.assert_close(loss, 0.3 * one_side(batch.y) + 0.7 * one_side(batch.y[SHIFT]))
