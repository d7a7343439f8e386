"""What the sampler draws, given votes, and that nothing but the draw differs from ERM."""

from dataclasses import replace

import pytest
import torch
from learner_kit import gradients, graphs, make, reached

from harness.suite.settings import TrainSettings
from harness.training.loop import TrainingData, fit
from plugins.decorrelators.balanced_sampler import BalancedSampler

SIZES = torch.tensor([[40, 3, 0], [5, 30, 2], [1, 4, 35]])
"""Graphs of each (class, cluster); one pair does not occur."""
PAIR = torch.arange(9).repeat_interleave(SIZES.flatten())
PACKED = replace(graphs(len(PAIR)), y=PAIR // 3)


def votes_for(cluster):
    """(n, 3, C) votes of which only the mean names the cluster: on every third graph each quantifier names the next."""
    wrong = torch.arange(3) == torch.arange(len(cluster)).reshape(-1, 1) % 3
    return torch.eye(3)[(cluster.reshape(-1, 1) + wrong) % 3]


def started(votes=None, packed=PACKED, seed=0):
    learner = make(BalancedSampler, num_train=len(packed), seed=seed, scores=(0.3, 0.3, 0.3))
    learner.spurious = votes_for(PAIR % 3) if votes is None else votes
    learner.on_fit_start(packed)
    return learner


def drawn(learner, epochs):
    return torch.cat([learner.training_order(torch.randperm(len(PAIR))) for _ in range(epochs)])


def test_every_class_and_cluster_that_occurs_has_an_equal_chance():
    shares = torch.zeros(9).double().index_add(0, PAIR, started().chances)
    assert torch.equal(shares > 0, SIZES.flatten() > 0)
    assert shares[shares > 0] / shares.sum() == pytest.approx(1 / 8)


def test_drawn_shares_are_equal_within_what_chance_allows():
    order = drawn(started(), epochs=200)
    shares = PAIR[order].bincount(minlength=9) / len(order)
    assert shares[2] == 0
    spread = (1 / 8 * 7 / 8 / len(order)) ** 0.5
    assert (shares[SIZES.flatten() > 0] - 1 / 8).abs().max() < 4 * spread
    commonest = order[PAIR[order] == 0].bincount(minlength=40)[:40]
    assert commonest.min() > 0  # alike within a pair, none forgotten
    assert commonest.max() < 3 * commonest.min()


def test_an_epoch_has_as_many_graphs_as_there_are_and_draws_from_its_own_generator():
    first, again, other = started(), started(), started(seed=1)
    order = drawn(first, 1)
    assert len(order) == len(PAIR)
    torch.rand(3)
    assert torch.equal(order, drawn(again, 1))
    assert not torch.equal(order, drawn(again, 1))
    assert not torch.equal(order, drawn(other, 1))


def test_where_each_pair_is_one_graph_or_all_are_one_pair_every_graph_is_alike():
    single = replace(graphs(9), y=torch.arange(9) // 3)
    assert started(votes_for(torch.arange(9) % 3), single).chances.unique().tolist() == [1.0]
    one = replace(graphs(9), y=torch.zeros(9, dtype=torch.long))
    assert len(started(votes_for(torch.zeros(9, dtype=torch.long)), one).chances.unique()) == 1


class Noting(BalancedSampler):
    """Keeps the graphs of its batches."""

    name = "noting"

    def loss(self, batch):
        self.seen.append(batch.index)
        return super().loss(batch)


def test_the_training_loop_takes_what_is_drawn():
    learner = make(Noting, num_train=len(PAIR), scores=(0.3, 0.3, 0.3))
    learner.seen = []
    data = TrainingData(PACKED, {"val": graphs(6).without_labels()}, lambda *_: 0.5, "val", votes_for(PAIR % 3))
    fit(learner, data, TrainSettings(20, 16, 32), seed=0)
    shares = PAIR[torch.cat(learner.seen)].bincount(minlength=9) / (20 * len(PAIR))
    assert shares[SIZES.flatten() > 0].min() > 0.1
    assert shares.max() < 0.15


def test_the_loss_is_that_of_erm_and_reaches_backbone_and_head():
    learner, batch = started(), PACKED.batch(torch.arange(12))
    loss = learner.loss(batch)["erm"]
    assert loss.item() == pytest.approx(torch.nn.functional.cross_entropy(learner(batch), batch.y).item())
    found = gradients(learner, loss)
    assert reached(found, "backbone")
    assert reached(found, "head")
