"""ERM: the loss by hand, its invariances, label shapes, and that it learns what can be learned."""

import numpy as np
import pytest
import torch
from learner_kit import BINARY, MULTITASK, graphs, make

from harness import PackedGraphs, RawGraph
from harness.training.losses import per_sample_loss
from plugins.backbones.gin import GIN
from plugins.baselines.erm import ERM


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("trailing_axis", [False, True])
def test_the_loss_is_the_mean_cross_entropy(size, trailing_axis):
    packed, learner = graphs(size), make(ERM).eval()
    batch = packed.batch(torch.arange(size))
    logits = learner(batch)
    expected = sum(-logits[i].log_softmax(0)[packed.y[i]] for i in range(size)) / size
    if trailing_axis:
        batch.y = batch.y.unsqueeze(1)
    assert learner.loss(batch)["erm"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_missing_label_changes_only_the_denominator():
    y = torch.tensor([[1.0, 0.0, torch.nan]])
    z = torch.tensor([[0.3, -1.0, 50.0]])
    expected = (torch.nn.functional.softplus(torch.tensor(-0.3)) + torch.nn.functional.softplus(torch.tensor(-1.0))) / 2
    assert per_sample_loss(z, y, MULTITASK).item() == pytest.approx(expected.item(), rel=1e-6)


def test_a_missing_label_gives_its_task_no_gradient():
    packed, learner = graphs(6, task=MULTITASK), make(ERM, task=MULTITASK)
    packed.y[:, 1] = torch.nan
    learner.loss(packed.batch(torch.arange(6)))["erm"].backward()
    last = learner.head[-1].weight.grad
    assert bool(torch.isfinite(last).all())
    assert last.abs().sum(1)[1].item() == 0.0
    assert bool((last.abs().sum(1)[[0, 2]] > 0).all())


def test_the_order_of_the_batch_does_not_matter():
    packed, learner = graphs(9), make(ERM)
    one, other = (learner.loss(packed.batch(ids))["erm"].item() for ids in (torch.arange(9), torch.randperm(9)))
    assert one == pytest.approx(other, rel=1e-5)


def test_the_order_of_the_nodes_does_not_matter():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 4)).astype(np.float32)
    edges = np.array([[0, 1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 0, 3]])
    order = rng.permutation(6)
    place = np.argsort(order)
    packed = PackedGraphs.pack([RawGraph(x, edges, 0), RawGraph(x[order], place[edges], 0)])
    logits = make(ERM, backbone=GIN).eval()(packed.batch(torch.arange(2)))
    torch.testing.assert_close(logits[0], logits[1])


def test_stars_and_cycles_are_told_apart():
    def undirected(pairs):
        return np.array([*pairs, *((b, a) for a, b in pairs)]).T

    star, cycle = undirected([(0, i) for i in range(1, 6)]), undirected([(i, (i + 1) % 6) for i in range(6)])
    ones = np.ones((6, 4), dtype=np.float32)
    packed = PackedGraphs.pack([RawGraph(ones, edges, 0) for edges in [star, cycle] * 8])
    packed.y = torch.tensor([0, 1] * 8)
    learner = make(ERM, task=BINARY, backbone=GIN, hidden=8)
    optimizers, batch = learner.optimizers(), packed.batch(torch.arange(16))
    for _ in range(60):
        learner.training_step(batch, optimizers)
    learner.eval()
    logits = learner(batch)
    assert torch.equal(logits.argmax(1), packed.y)
    assert torch.equal(logits, learner(batch))
