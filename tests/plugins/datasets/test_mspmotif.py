"""mSPMotif: SPMotif's graphs, and a feature that goes with the label in training alone."""

from __future__ import annotations

import numpy as np
import pytest
from base_motif_kit import check_mean, check_share, check_structure, digest, of_class, same

from plugins.datasets.mspmotif import MSPMotif


@pytest.fixture(scope="module")
def mixed():
    """Both biases 0.90, a third of the published size."""
    return MSPMotif(bias=0.9, num_per_class=[1000, 500, 500]).build(None)


def small(**options):
    return MSPMotif(**{"num_per_class": [60, 20, 20], **options}).build(None)


def values(graphs):
    """Each graph's feature, which all of its nodes share."""
    assert all((graph.x == graph.x[0, 0]).all() and graph.x[0, 0] in (0, 1, 2) for graph in graphs)
    return np.array([int(graph.x[0, 0]) for graph in graphs])


def labels(graphs):
    return np.array([graph.y for graph in graphs])


def test_structure_is_that_of_spmotif(mixed):
    for graphs in mixed.splits.values():
        for graph in graphs[::20]:
            check_structure(graph)
            assert graph.oracle["motif"] == graph.y


def test_full_counts_are_declared():
    assert "train 9000 (3000 per class), val 3000 (1000 per class)" in MSPMotif().declare(None).notes[0]


def test_the_training_feature_goes_with_the_label(mixed):
    train = mixed.splits["train"]
    for label in range(3):
        found = values(of_class(train, label))
        check_share(found == label, 0.9)
        for other in {0, 1, 2} - {label}:
            check_share(found == other, 0.05)


@pytest.mark.parametrize("split", ["val", "test"])
def test_elsewhere_the_feature_says_nothing_of_the_label(mixed, split):
    for label in range(3):
        found = values(of_class(mixed.splits[split], label))
        for value, share in enumerate((0.33, 0.33, 0.34)):
            check_share(found == value, share)


def test_feature_and_base_are_independent_given_the_label(mixed):
    train = mixed.splits["train"]
    agrees = np.array([graph.oracle["base"] == graph.y for graph in train])
    check_share((values(train) == labels(train))[~agrees], 0.9)


def test_base_agreement_and_size_shift_are_those_of_spmotif(mixed):
    for name, share in {"train": 0.9, "val": 1 / 3, "test": 1 / 3}.items():
        check_share([graph.oracle["base"] == graph.y for graph in mixed.splits[name]], share)
    check_mean([len(graph.x) for graph in mixed.splits["test"]], 5 + (317 / 3 + 79 + 69.5) / 3)


def test_feature_bias_is_the_bias_unless_given():
    assert digest(small(bias=0.7)) == digest(small(bias=0.7, feature_bias=0.7))
    one = small(bias=0.7, feature_bias=1.0)
    assert (values(one.splits["train"]) == labels(one.splits["train"])).all()
    for graph, other in zip(one.splits["train"], small(bias=0.7).splits["train"], strict=True):
        assert np.array_equal(graph.edge_index, other.edge_index)
    for name in ("val", "test"):
        assert all(map(same, one.splits[name], small(bias=0.7).splits[name]))


def test_declaration_tells_bias_features_and_slip():
    declared = MSPMotif(bias=0.9, feature_bias=0.7).declare(None)
    notes = " ".join(declared.notes)
    assert "its label in 0.7" in notes
    assert "slip" in notes
    assert "one of 0, 1, 2 for all nodes" in notes
    assert "slip" not in " ".join(MSPMotif(variant="clean").declare(None).notes)
    assert declared.variant == "published, one-direction edges, features tied to the label in train"
    assert declared.validation == "unbiased"


def test_graphs_stay_the_same_for_ever():
    """A change here changes every result on mSPMotif: bump the protocol version and say so."""
    assert digest(small()) == "9913737f0c387f9c50975e80edf8d1d106cf1cfca24b632ec50cb4ecfa082210"
