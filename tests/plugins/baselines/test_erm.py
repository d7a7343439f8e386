"""ERM: the loss by hand, its invariances, label shapes, and that it learns what can be learned."""

import numpy as np
import pytest
import torch
from learner_kit import BINARY, MULTITASK, graphs, make

from harness import PackedGraphs, RawGraph
from harness.nn.losses import per_sample_loss
from plugins.backbones.gin import GIN
from plugins.baselines.erm import ERM
from plugins.baselines.groupdro import GroupDRO
from plugins.baselines.irm import IRM
from plugins.baselines.vrex import VREx


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


def sparse(n=8):
    """Multi-task graphs of which every other has no label, and the rest one to three."""
    packed = graphs(n, task=MULTITASK)
    packed.y[::2] = torch.nan
    packed.y[1, 1:] = torch.nan
    packed.y[3, 2] = torch.nan
    return packed.batch(torch.arange(n))


def entries(learner, batch, rows):
    """Binary cross-entropies of some graphs' labels, by a loop in float64; a list for each graph."""
    z = learner(batch).detach().double()
    return [
        [
            float(torch.nn.functional.softplus(-z[i, t] if batch.y[i, t] == 1 else z[i, t]))
            for t in range(3)
            if not torch.isnan(batch.y[i, t])
        ]
        for i in rows
    ]


@pytest.mark.parametrize("over", ["labels", "graphs"])
def test_missing_labels_do_not_dilute_the_mean(over):
    batch, learner = sparse(), make(ERM, task=MULTITASK, average_over=over).eval()
    found = entries(learner, batch, range(8))
    assert [len(row) for row in found] == [0, 1, 0, 2, 0, 3, 0, 3]
    each, own = [value for row in found for value in row], [np.mean(row) for row in found if row]
    expected = np.mean(each if over == "labels" else own)
    assert learner.loss(batch)["erm"].item() == pytest.approx(expected, rel=1e-6)
    assert np.mean(each) != pytest.approx(np.mean(own), rel=1e-2)


def test_complete_labels_are_averaged_bit_for_bit_as_ever():
    packed = graphs(7, task=MULTITASK)
    batch, learner = packed.batch(torch.arange(7)), make(ERM, task=MULTITASK)
    logits = learner(batch)
    assert torch.equal(learner.risk(logits, batch), per_sample_loss(logits, batch.y, MULTITASK))


@pytest.mark.parametrize("method", [VREx, IRM, GroupDRO])
def test_each_label_counts_once_in_its_environment_too(method):
    batch, learner = sparse(), make(method, task=MULTITASK).eval()
    batch.env = torch.tensor([0, 0, 1, 0, 0, 1, 1, 1])
    risks = [
        np.mean([v for row in entries(learner, batch, rows) for v in row]) for rows in ((0, 1, 3, 4), (2, 5, 6, 7))
    ]
    terms = learner.loss(batch)
    if method is VREx:
        assert terms["variance"].item() == pytest.approx((risks[0] - risks[1]) ** 2 / 4, rel=1e-4)
    elif method is GroupDRO:
        weights = np.exp(0.01 * np.array(risks))
        assert terms["worst"].item() == pytest.approx(weights @ risks / weights.sum(), rel=1e-5)
    else:
        w = torch.ones((), dtype=torch.float64, requires_grad=True)
        z, known = learner(batch).double(), ~torch.isnan(batch.y)
        loss = torch.nn.functional.binary_cross_entropy_with_logits
        grads = [
            torch.autograd.grad(loss((w * z)[mask], batch.y.double()[mask]), w, retain_graph=True)[0]
            for mask in (known & (batch.env == e).unsqueeze(1) for e in (0, 1))
        ]
        assert terms["invariance"].item() == pytest.approx(float(grads[0] ** 2 + grads[1] ** 2) / 2, rel=1e-4)


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
