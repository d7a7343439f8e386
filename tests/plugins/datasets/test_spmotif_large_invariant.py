"""SPMotif with many motifs: copies, where they hang, base sizes, and what the paper's averages say."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from base_motif_kit import check_share, digest, of_class

from plugins.datasets import _recipe as recipes
from plugins.datasets.spmotif_large_invariant import LargeInvariant


@pytest.fixture(scope="module")
def large():
    """Bias 0.90, a fifth of the full size."""
    return LargeInvariant(bias=0.9, num_per_class=[600, 200, 200]).build(None)


def small(**options):
    return LargeInvariant(**{"num_per_class": [30, 10, 10], **options}).build(None)


def motif_nodes(graph):
    return int(graph.oracle["node_gt"].sum())


def base_nodes(graph):
    return len(graph.x) - motif_nodes(graph)


def test_ten_intact_motifs_in_every_split(large):
    for graphs in large.splits.values():
        for graph in graphs[::25]:
            base, edges = base_nodes(graph), graph.edge_index
            assert motif_nodes(graph) == 50
            assert (edges[0] < edges[1]).all()
            whole = nx.Graph(edges.T.tolist())
            assert whole.number_of_edges() == edges.shape[1]
            assert whole.number_of_nodes() == len(graph.x)
            assert nx.is_connected(whole)
            motif = nx.Graph(recipes.PUBLISHED_MOTIFS[graph.y])
            parts = list(nx.connected_components(whole.subgraph(range(base, len(graph.x)))))
            assert sorted(map(min, parts)) == list(range(base, len(graph.x), 5))
            assert all(nx.is_isomorphic(whole.subgraph(part), motif) for part in parts)
            assert graph.oracle["edge_gt"].sum() == 10 * motif.number_of_edges()
            assert graph.oracle["edge_gt"].tolist() == (edges >= base).all(0).tolist()


def test_each_copy_hangs_on_a_base_node_by_its_first_node(large):
    counts = []
    for graph in large.splits["train"]:
        base, (source, target) = base_nodes(graph), graph.edge_index
        first = (source < base) & (target >= base) & ((target - base) % 5 == 0)
        assert set(target[first].tolist()) == set(range(base, len(graph.x), 5))
        counts.append(len(set(source[first].tolist())))
    assert min(counts) < 10, "base nodes are drawn with replacement"


def test_base_goes_with_the_label_as_in_spmotif(large):
    for name, agreement in {"train": 0.9, "val": 1 / 3, "test": 1 / 3}.items():
        for label in range(3):
            bases = np.array([graph.oracle["base"] for graph in of_class(large.splits[name], label)])
            check_share(bases == label, agreement)
            for other in {0, 1, 2} - {label}:
                check_share(bases == other, (1 - agreement) / 2)


def test_number_of_motifs_is_an_option():
    graphs = small(motifs=3).splits["test"]
    assert {motif_nodes(graph) for graph in graphs} == {15}
    assert "3 copies of its motif, 15 nodes" in " ".join(LargeInvariant(motifs=3).declare(None).notes)


def test_extra_edges_are_five_in_a_hundred_less_those_inside_the_motifs(large):
    """int(0.05 E) tries; a pair among the 50 motif nodes is dropped, and motif pairs are most of all pairs."""
    for graph in large.splits["train"]:
        base, kind = base_nodes(graph), graph.oracle["base"]
        plain = (base - 1, 3 * base // 2 - 2, 2 * (base - 1))[kind] + 10 + int(graph.oracle["edge_gt"].sum())
        assert 0 <= graph.edge_index.shape[1] - plain <= int(0.05 * plain)


def test_declaration_says_that_sizes_are_ours():
    declared = LargeInvariant().declare(None)
    assert declared.variant == "ours, 10 motifs, one-direction edges, constant features"
    assert "our choice" in " ".join(declared.notes)
    assert "train 9000 (3000 per class), val 3000 (1000 per class), test 3000" in declared.notes[0]


def test_graphs_stay_the_same_for_ever():
    """A change here changes every result on this set: bump the protocol version and say so."""
    assert digest(small()) == "dbfabbfa4293c251cbca28e6919044a016c0a46a49e4ec35d35a404b07092753"
