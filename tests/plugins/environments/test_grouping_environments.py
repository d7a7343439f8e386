"""Clusters of embeddings, sizes, and scaffolds as environments."""

from types import SimpleNamespace

import pytest
import torch
from learner_kit import graphs
from sklearn.cluster import KMeans as Clusters

from harness import PackedGraphs, RawGraph
from harness.randomness import generator
from plugins.environments.kmeans import KMeans
from plugins.environments.scaffold import Scaffold, deal
from plugins.environments.size import Size


def with_rng(component, seed=0):
    component.rng = generator(seed, "environment")
    return component


def clusters(embeddings, seed=0, **values):
    component = with_rng(KMeans(**values), seed)
    packed = graphs(len(embeddings), nodes=(3, 4))
    return component.assign(packed, {}, {"reference": SimpleNamespace(embeddings=embeddings)}), component


def same_partition(left, right):
    pairs = set(zip(left.tolist(), right.tolist(), strict=True))
    return len(pairs) == len(set(left.tolist())) == len(set(right.tolist()))


def test_kmeans_finds_well_separated_groups():
    rng = generator(0, "points")
    truth = torch.arange(60) % 3
    points = torch.tensor([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])[truth] + torch.randn(60, 2, generator=rng) * 0.3
    assert same_partition(clusters(points, k=3)[0], truth)


def test_kmeans_is_scikit_learns():
    points = torch.randn(40, 5, generator=generator(0, "points"))
    state = int(torch.randint(2**31 - 1, (1,), generator=generator(3, "environment")))
    expected = Clusters(4, n_init=10, random_state=state).fit_predict(points.double().numpy())
    assert torch.equal(clusters(points, seed=3, k=4)[0], torch.from_numpy(expected).long())


def test_normalised_clusters_go_by_direction():
    direction = torch.arange(20) % 2
    points = torch.tensor([[1.0, 0.0], [0.0, 1.0]])[direction] * torch.arange(1.0, 21.0).square().unsqueeze(1)
    assert same_partition(clusters(points, k=2, normalised=True)[0], direction)
    assert not same_partition(clusters(points, k=2)[0], direction)


def test_fewer_distinct_embeddings_than_clusters():
    ids, component = clusters(torch.ones(8, 3), k=3)
    assert ids.tolist() == [0] * 8
    assert component.flags == ["1 clusters instead of 3: there are no more distinct embeddings"]


def test_size_quantiles_keep_graphs_of_one_size_together():
    sizes = [2, 3, 3, 4, 5, 5, 6, 9]
    packed = PackedGraphs.pack([RawGraph(torch.ones(n, 1).numpy(), torch.zeros(2, 0).long().numpy(), 0) for n in sizes])
    assert Size(k=2).assign(packed, {}, {}).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    three = Size(k=3).assign(packed, {}, {})
    assert three.tolist() == sorted(three.tolist())
    assert three[1] == three[2]
    assert three[4] == three[5]


def test_graphs_of_one_size_are_one_environment():
    component = Size(k=3)
    assert component.assign(graphs(10, nodes=(4, 5)), {}, {}).tolist() == [0] * 10
    assert component.flags == ["1 environments instead of 3: one size has more than a share of the graphs"]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_scaffolds_stay_whole_in_groups_of_about_equal_size(k):
    scaffolds = torch.repeat_interleave(torch.arange(30), torch.arange(30) % 6 + 1)
    dealt = deal(scaffolds, k)
    sizes = torch.bincount(dealt)
    assert len(sizes) == k
    assert int(sizes.max() - sizes.min()) <= 6
    assert all(len(dealt[scaffolds == scaffold].unique()) == 1 for scaffold in range(30))


def test_graphs_without_a_scaffold_stay_outside():
    component = Scaffold(k=2)
    component.groups = {"scaffold": torch.tensor([4, -1, 4, 9])}
    assert component.assign(graphs(4), {}, {}).tolist() == [0, -1, 0, 1]
    assert Scaffold.requires == "scaffold"


def test_fewer_scaffolds_than_groups_leave_no_gap():
    assert deal(torch.tensor([7, 7, 2]), 5).tolist() == [0, 0, 1]
