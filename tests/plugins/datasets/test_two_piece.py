"""Two-piece graphs: agreements of motif and base with the label in every split, and what is declared about them."""

from __future__ import annotations

import numpy as np
import pytest
from base_motif_kit import check_share, check_structure, digest

from plugins.datasets.spmotif import SPMotif
from plugins.datasets.two_piece import TwoPiece

AGREEMENTS = {"train": 0.9, "val": 0.7, "test": 0.33}


@pytest.fixture(scope="module")
def hardest():
    """(0.7, 0.9) at full size."""
    return TwoPiece(invariant=0.7, spurious=0.9).build(None)


def small(**options):
    return TwoPiece(**{"num_per_class": [30, 10, 10], **options}).build(None)


def fields(graphs):
    return (np.array([g.y if n == "y" else g.oracle[n] for g in graphs]) for n in ("y", "base", "motif"))


def test_counts(hardest):
    assert {name: len(graphs) for name, graphs in hardest.splits.items()} == {"train": 9000, "val": 3000, "test": 3000}
    for graphs in hardest.splits.values():
        assert np.bincount([graph.y for graph in graphs]).tolist() == [len(graphs) // 3] * 3


def test_structure(hardest):
    for graphs in hardest.splits.values():
        for graph in graphs[:: len(graphs) // 300]:
            check_structure(graph)


@pytest.mark.parametrize("split", AGREEMENTS)
def test_base_agreement(hardest, split):
    y, base, _ = fields(hardest.splits[split])
    for label in range(3):
        check_share(base[y == label] == label, AGREEMENTS[split])
        for other in {0, 1, 2} - {label}:
            check_share(base[y == label] == other, (1 - AGREEMENTS[split]) / 2)


@pytest.mark.parametrize("split", AGREEMENTS)
def test_motif_agreement_is_one_minus_two_thirds_of_the_noise(hardest, split):
    y, _, motif = fields(hardest.splits[split])
    for label in range(3):
        check_share(motif[y == label] == label, 0.8)
        for other in {0, 1, 2} - {label}:
            check_share(motif[y == label] == other, 0.1)


def test_base_and_motif_are_independent_given_the_label(hardest):
    y, base, motif = fields(hardest.splits["train"])
    for label in range(3):
        agrees = base[y == label] == label
        check_share((motif[y == label] == label)[~agrees], 0.8)


@pytest.mark.parametrize(
    ("spurious", "val", "validation"), [(0.6, 0.4, "biased"), (0.7, 0.5, "biased"), (0.5, 1 / 3, "unbiased")]
)
def test_validation_is_biased_unless_the_shift_is_small(spurious, val, validation):
    dataset = TwoPiece(spurious=spurious)
    assert dataset.val_agreement == pytest.approx(val)
    declared = dataset.declare(None)
    assert declared.validation == validation
    assert f"val {val:.3g}" in declared.notes[0]


def test_description_tells_the_effective_agreements():
    declared = TwoPiece(invariant=0.7, spurious=0.9).declare(None)
    notes = " ".join(declared.notes)
    assert "0.8000" in notes
    assert "label noise 0.3" in notes
    assert "train 0.9, val 0.7, test 0.33" in notes
    assert "Validation is biased" in notes
    assert declared.variant == "published, one-direction edges, constant features"
    assert "0.8667" in " ".join(TwoPiece(invariant=0.8).declare(None).notes)


def test_no_noise_ties_motif_to_label():
    assert all(graph.oracle["motif"] == graph.y for graph in small(invariant=1.0).splits["train"])


def test_streams_differ_from_those_of_spmotif():
    one = SPMotif(variant="clean", num_per_class=[30, 10, 10]).build(None).splits["train"]
    other = small(invariant=1.0, spurious=0.6).splits["train"]
    assert sum(len(g.x) == len(h.x) for g, h in zip(one, other, strict=True)) < len(one) / 2


def test_graphs_stay_the_same_for_ever():
    """A change here changes every result on two-piece graphs: bump the protocol version and say so."""
    assert digest(small()) == "48f54384bdca1ada7d21a85cdfbb86f87e3336ce22cb42d285fdd2a60fd07b59"
