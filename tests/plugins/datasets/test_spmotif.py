"""SPMotif: structure, closed forms, published statistics, independence of the random streams."""

from __future__ import annotations

import numpy as np
import pytest
from base_motif_kit import (
    TREE,
    base_nodes,
    check_share,
    check_structure,
    digest,
    extra_edges,
    of_class,
    same,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from harness.errors import DataError, UserError
from plugins.datasets.spmotif import SPMotif

DIR_MOTIF_EDGES = (5, 6, 7)


@pytest.fixture(scope="module")
def published():
    """Bias 0.90 at full size."""
    return SPMotif(bias=0.9).build(None)


@pytest.fixture(scope="module")
def dir_variant():
    return SPMotif(bias=1 / 3, variant="dir").build(None)


def small(**options):
    return SPMotif(**{"num_per_class": [30, 10, 10], **options}).build(None)


@pytest.mark.parametrize(("variant", "counts"), [("published", (9000, 3000, 3000)), ("dir", (3000, 3000, 6000))])
def test_split_and_class_counts(variant, counts, request):
    raw = request.getfixturevalue({"published": "published", "dir": "dir_variant"}[variant])
    assert tuple(len(graphs) for graphs in raw.splits.values()) == counts
    for graphs in raw.splits.values():
        assert np.bincount([graph.y for graph in graphs]).tolist() == [len(graphs) // 3] * 3


def test_structure_of_published_graphs(published):
    for graphs in published.splits.values():
        for graph in graphs[:: len(graphs) // 300]:
            check_structure(graph)


def test_structure_of_dir_graphs(dir_variant):
    for graphs in dir_variant.splits.values():
        for graph in graphs[:: len(graphs) // 300]:
            check_structure(graph, DIR_MOTIF_EDGES)
            assert extra_edges(graph, DIR_MOTIF_EDGES) == 0


def test_the_label_is_the_motif(published):
    assert all(graph.oracle["motif"] == graph.y for graphs in published.splits.values() for graph in graphs)


def test_smallest_and_largest_graphs(published):
    spans = {name: sorted(len(graph.x) for graph in graphs) for name, graphs in published.splits.items()}
    assert (spans["train"][0], spans["train"][-1]) == (6, 45)
    assert (spans["val"][0], spans["val"][-1]) == (20, 45)
    assert (spans["test"][0], spans["test"][-1]) == (20, 369)


def test_a_test_split_of_training_size_leaves_all_other_graphs_as_they_are():
    usual, both, same_size = (small(test_size=size) for size in ("published", "both", "same"))
    assert list(both.splits) == ["train", "val", "test", "test-same-size"]
    for one, other, splits in ((usual, both, ("train", "val", "test")), (usual, same_size, ("train", "val"))):
        for name in splits:
            assert all(map(same, one.splits[name], other.splits[name]))
    for graphs in (both.splits["test-same-size"], same_size.splits["test"]):
        assert max(len(graph.x) for graph in graphs) <= 45 < max(len(graph.x) for graph in usual.splits["test"])


def test_the_caption_tells_the_size_of_test_graphs():
    both, same_size = (SPMotif(test_size=size).declare(None) for size in ("both", "same"))
    assert [name for name, role in both.splits.items() if role == "test"] == ["test", "test-same-size"]
    assert not both.departures
    assert same_size.departures == ("test graphs of validation's size (published: large)",)


def test_base_goes_with_the_label_as_often_as_declared(published):
    for name, agreement in {"train": 0.9, "val": 1 / 3, "test": 1 / 3}.items():
        for label in range(3):
            bases = np.array([graph.oracle["base"] for graph in of_class(published.splits[name], label)])
            check_share(bases == label, agreement)
            for other in {0, 1, 2} - {label}:
                check_share(bases == other, (1 - agreement) / 2)


@pytest.mark.parametrize("label", range(3))
def test_published_tree_heights_have_the_slip(published, label):
    trees = [g for g in of_class(published.splits["train"], label) if g.oracle["base"] == TREE]
    assert {base_nodes(graph) for graph in trees} == ({15, 40} if label == 0 else {1, 3, 4, 7, 13})
    val = [g for g in of_class(published.splits["val"], label) if g.oracle["base"] == TREE]
    assert {base_nodes(graph) for graph in val} == {15, 40}


def test_extra_edges(published):
    """The published code adds 1.23 edges in train and 5.80 in test on average."""
    train = np.array([extra_edges(graph) for graph in published.splits["train"]])
    assert train.mean() == pytest.approx(1.23, abs=0.05)
    assert set(train.tolist()) == {0, 1, 2}
    test = np.array([extra_edges(graph) for graph in published.splits["test"]])
    assert test.mean() == pytest.approx(5.8, abs=0.3)
    assert 15 <= test.max() <= 19


def test_extra_edges_join_base_nodes_to_anything(published):
    joins = [int((~g.oracle["node_gt"][g.edge_index]).any(0).sum()) for g in published.splits["train"]]
    crossing = [
        int(((g.edge_index[0] < base_nodes(g)) & (g.edge_index[1] >= base_nodes(g))).sum())
        for g in published.splits["train"]
    ]
    assert min(joins) >= 1
    assert min(crossing) == 1
    assert np.mean(np.array(crossing) == 1) == pytest.approx(0.57, abs=0.03)


def test_size_shortcut_and_shift_are_as_published(published):
    """A tree on sizes alone: .942 / .615 / .352 on the published graphs."""
    tables = {
        name: np.array([(len(g.x), g.edge_index.shape[1], g.edge_index.shape[1] / len(g.x)) for g in graphs])
        for name, graphs in published.splits.items()
    }
    labels = {name: [graph.y for graph in graphs] for name, graphs in published.splits.items()}
    model = DecisionTreeClassifier(max_depth=8, random_state=0).fit(tables["train"], labels["train"])
    scores = {name: model.score(tables[name], labels[name]) for name in tables}
    assert scores["train"] == pytest.approx(0.942, abs=0.02)
    assert scores["val"] == pytest.approx(0.615, abs=0.04)
    assert scores["test"] == pytest.approx(0.352, abs=0.05)


@pytest.mark.parametrize("features", ["ones", "uniform"])
def test_node_features_alone_score_at_chance(features):
    raw = SPMotif(bias=0.9, node_features=features, num_per_class=[300, 10, 500]).build(None)
    means, labels = {}, {}
    for name, graphs in raw.splits.items():
        means[name] = np.array([graph.x.mean(0) for graph in graphs])
        labels[name] = [graph.y for graph in graphs]
    model = LogisticRegression().fit(means["train"], labels["train"])
    assert model.score(means["test"], labels["test"]) == pytest.approx(1 / 3, abs=0.05)


def test_features():
    assert all((graph.x == 1).all() for graph in small().splits["train"])
    drawn = np.concatenate([graph.x for graph in small(node_features="uniform").splits["train"]])
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert drawn.mean() == pytest.approx(0.5, abs=0.03)


def test_features_do_not_move_the_graphs():
    for one, other in zip(small().splits["test"], small(node_features="uniform").splits["test"], strict=True):
        assert np.array_equal(one.edge_index, other.edge_index)


def test_undirected_adds_the_reverse_edges():
    for one, both in zip(small().splits["train"], small(undirected=True).splits["train"], strict=True):
        assert np.array_equal(both.edge_index, np.concatenate([one.edge_index, one.edge_index[::-1]], axis=1))
        assert np.array_equal(both.oracle["edge_gt"], np.tile(one.oracle["edge_gt"], 2))


def test_more_graphs_leave_the_others_as_they_are():
    few, many = small(), small(num_per_class=[35, 11, 10])
    for name, graphs in few.splits.items():
        rest = iter(many.splits[name])
        assert all(any(same(graph, other) for other in rest) for graph in graphs)


def test_bias_leaves_validation_and_test_as_they_are():
    low, high = small(bias=0.33), small(bias=0.9)
    assert not all(map(same, low.splits["train"], high.splits["train"]))
    for name in ("val", "test"):
        assert all(map(same, low.splits[name], high.splits[name]))


def test_splits_do_not_repeat_each_other():
    raw = small(variant="clean", bias=1 / 3, num_per_class=[30, 30, 10], node_features="uniform")
    assert not any(same(one, other) for one in raw.splits["train"] for other in raw.splits["val"])


def test_the_place_of_a_graph_says_nothing_of_its_label(published):
    for graphs in published.splits.values():
        labels = np.array([graph.y for graph in graphs])
        third = len(labels) // 3
        for part in (labels[:third], labels[third : 2 * third], labels[2 * third :], labels[::3], labels[1::3]):
            check_share(part == 0, 1 / 3)
        check_share(labels[1:] == labels[:-1], 1 / 3)


GOLDEN = {
    "published": "2bdf2380aee7035f7c5f1c6f7a57b90b09251567c573fbdfca573d0426603764",
    "dir": "6675d3df3d75bb9ac21c4a07a88e0b69153de8481c2323e37b16d1fcd9b000ec",
    "clean": "2c90a32e2c9d2de9b16a77cf83526f1ea6e60ae858805ddb2d5aafc41a11cf65",
}


@pytest.mark.parametrize("variant", GOLDEN)
def test_graphs_stay_the_same_for_ever(variant):
    """A change here changes every result on SPMotif: bump the protocol version and say so in the changelog."""
    assert digest(small(variant=variant)) == GOLDEN[variant]


def test_declaration():
    declared = SPMotif(bias=0.9).declare(None)
    assert declared.task.kind == "multiclass"
    assert declared.task.num_classes == 3
    assert declared.node_features.sizes == (4,)
    assert declared.edge_features.kind == "none"
    assert declared.oracle == ("base", "motif", "node_gt", "edge_gt")
    assert declared.environments == 0
    assert declared.validation == "unbiased"
    assert declared.variant == "published, one-direction edges, constant features"


def test_description_tells_counts_bias_features_and_slips():
    notes = " ".join(SPMotif(bias=0.9).declare(None).notes)
    assert "train 9000 (3000 per class), val 3000 (1000 per class), test 3000 (1000 per class)" in notes
    assert "train 0.9, val 0.333, test 0.333" in notes
    assert "constant ones" in notes
    assert "slip" in notes
    assert "never back" in notes
    clean = SPMotif(variant="clean", undirected=True).declare(None)
    assert "slip" not in " ".join(clean.notes)
    assert clean.variant == "clean generator, undirected, constant features"
    assert SPMotif(variant="dir").declare(None).variant == "dir, one-direction edges, uniform random features"


def test_what_differs_from_the_published_set_is_declared():
    for full in (SPMotif(), SPMotif(variant="dir"), SPMotif(num_per_class=[3000, 1000, 1000])):
        assert full.declare(None).departures == ()
    small = SPMotif(num_per_class=[200, 60, 100], node_features="uniform", undirected=True).declare(None)
    assert small.departures == (
        "reduced: 200/60/100 of 3000/1000/1000 graphs per class",
        "undirected (published: one-direction edges)",
        "uniform random features (published: constant features)",
    )
    assert small.variant == "published generator, undirected, uniform random features"


@pytest.mark.parametrize("options", [{"num_per_class": [3]}, {"num_per_class": []}])
def test_three_counts_are_due(options):
    with pytest.raises(DataError, match="three counts"):
        SPMotif(**options).declare(None)


@pytest.mark.parametrize(
    "options", [{"bias": 1.5}, {"num_per_class": [0, 1, 1]}, {"variant": "ciga"}, {"seed": -1}, {"split_seed": 1}]
)
def test_values_out_of_range_are_refused(options):
    with pytest.raises(UserError, match="spmotif"):
        SPMotif(**options)
