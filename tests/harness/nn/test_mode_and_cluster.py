"""Evaluation mode and fixed statistics for a block; k-means against scikit-learn, on blobs, and on degenerate rows."""

import random

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from torch import nn

from harness import DivergedError
from harness.nn import BatchNorm, evaluating, keeping_statistics, kmeans


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def blobs(n=20, apart=10.0):
    return torch.cat([torch.randn(n, 3, generator=gen(i)) + apart * i for i in range(2)])


def test_evaluating_gives_each_part_its_own_mode_back_also_after_an_error():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))
    net[2].eval()
    with evaluating(net):
        assert not any(part.training for part in net.modules())
    assert [part.training for part in net.modules()] == [True, True, True, False]
    with pytest.raises(RuntimeError), evaluating(net):
        raise RuntimeError
    assert net.training


@pytest.mark.parametrize("norm", [nn.BatchNorm1d, BatchNorm])
def test_keeping_statistics_normalises_by_the_batch_and_moves_nothing(norm):
    net, x = nn.Sequential(norm(3)), torch.randn(8, 3, generator=gen()) * 5
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with keeping_statistics(net):
        kept = net(x)
    with pytest.raises(RuntimeError), keeping_statistics(net):
        raise RuntimeError
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert torch.allclose(kept, (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt(), atol=1e-5)
    assert torch.equal(net(x), kept)
    assert not torch.equal(net[0].running_mean, before["0.running_mean"])


@pytest.mark.parametrize("norm", [nn.InstanceNorm1d(3, track_running_stats=True), nn.BatchNorm2d(3)])
def test_keeping_statistics_holds_for_every_norm_that_has_them(norm):
    x = torch.randn(4, 3, 5, *[5] * isinstance(norm, nn.BatchNorm2d), generator=gen()) * 5
    norm(x)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    with keeping_statistics(norm):
        norm(x)
        assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())
        inside = norm.eval()(x)
    assert torch.equal(norm(x), inside)


def test_keeping_statistics_leaves_evaluation_alone():
    net, x = nn.Sequential(nn.BatchNorm1d(3), BatchNorm(3)), torch.randn(8, 3, generator=gen())
    net(x)
    expected = net.eval()(x)
    with keeping_statistics(net):
        assert torch.equal(net(x), expected)


def test_two_separated_blobs_are_recovered():
    ids, centres = kmeans(blobs(), 2, generator=gen())
    assert len(ids[:20].unique()) == len(ids[20:].unique()) == 1
    assert ids[0] != ids[-1]
    assert torch.allclose(centres[ids[0]], blobs()[:20].mean(0), atol=1e-5)


def test_the_same_as_scikit_learn_with_the_seed_that_the_generator_gives():
    rows = torch.randn(30, 4, generator=gen(3))
    seed = int(torch.randint(2**31 - 1, (1,), generator=gen(5)))
    expected = KMeans(3, n_init=4, random_state=seed).fit(rows.numpy())
    found = kmeans(rows, 3, generator=gen(5), restarts=4)
    assert np.array_equal(found.ids.numpy(), expected.labels_)
    assert np.allclose(found.centres.numpy(), expected.cluster_centers_, atol=1e-6)


def test_global_generators_are_neither_seeded_nor_drawn_from():
    states = np.random.get_state()[1].copy(), random.getstate(), torch.get_rng_state()
    kmeans(blobs(), 2, generator=gen())
    assert np.array_equal(states[0], np.random.get_state()[1])
    assert states[1] == random.getstate()
    assert torch.equal(states[2], torch.get_rng_state())


def test_seeds_decide():
    rows = torch.rand(200, 2, generator=gen(1))
    one, two = (kmeans(rows, 8, generator=gen(7), restarts=1).ids for _ in range(2))
    assert torch.equal(one, two)
    assert not torch.equal(one, kmeans(rows, 8, generator=gen(8), restarts=1).ids)


def test_fewer_rows_or_fewer_distinct_rows_than_clusters():
    assert sorted(kmeans(torch.eye(2), 5, generator=gen()).ids.tolist()) == [0, 1]
    assert len(kmeans(torch.ones(6, 2), 3, generator=gen()).ids.unique()) == 1


def test_rows_that_are_not_finite_are_a_divergence():
    with pytest.raises(DivergedError, match="not finite"):
        kmeans(torch.tensor([[1.0], [torch.nan]]), 2, generator=gen())
