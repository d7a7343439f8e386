"""The pieces of base-motif graphs, against NetworkX and closed forms, and the draws they are made with."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from plugins.datasets import _recipe as recipes
from plugins.datasets._shapes import Draws, Piece, ladder, tree, wheel


def as_graph(piece: Piece) -> nx.Graph:
    graph = nx.empty_graph(piece.nodes)
    graph.add_edges_from(piece.edges.T.tolist())
    return graph


@pytest.mark.parametrize("height", range(6))
@pytest.mark.parametrize("branching", [2, 3])
def test_tree_is_the_balanced_tree(branching, height):
    piece = tree(branching, height)
    assert piece.nodes == {2: [1, 3, 7, 15, 31, 63], 3: [1, 4, 13, 40, 121, 364]}[branching][height]
    assert nx.utils.graphs_equal(as_graph(piece), nx.balanced_tree(branching, height))


@pytest.mark.parametrize("width", [2, 8, 11, 49])
def test_ladder_has_two_sides_and_rungs(width):
    piece = ladder(width)
    assert (piece.nodes, piece.edges.shape[1]) == (2 * width, 3 * width - 2)
    assert nx.utils.graphs_equal(as_graph(piece), nx.ladder_graph(width))


@pytest.mark.parametrize("size", [4, 15, 19, 79])
def test_wheel_has_a_hub_and_a_rim(size):
    piece = wheel(size)
    assert (piece.nodes, piece.edges.shape[1]) == (size, 2 * (size - 1))
    assert nx.utils.graphs_equal(as_graph(piece), nx.wheel_graph(size))


@pytest.mark.parametrize("piece", [tree(3, 2), ladder(8), wheel(15)], ids=["tree", "ladder", "wheel"])
def test_edges_go_from_the_lower_to_the_higher_id(piece):
    assert (piece.edges[0] < piece.edges[1]).all()
    assert piece.pairs == set(map(tuple, piece.edges.T.tolist()))


def test_motifs_are_the_published_ones():
    cycle, house, crane = (nx.Graph(edges) for edges in recipes.PUBLISHED_MOTIFS)
    assert nx.is_isomorphic(cycle, nx.cycle_graph(5))
    assert nx.is_isomorphic(house, nx.house_graph())
    assert nx.is_isomorphic(crane, nx.complete_bipartite_graph(2, 3))
    assert sorted(dict(house.degree).values()) == sorted(dict(crane.degree).values()) == [2, 2, 2, 3, 3]
    assert sum(nx.triangles(crane).values()) == 0


def test_the_crane_of_dir_has_seven_edges():
    crane = nx.Graph(recipes.DIR_MOTIFS[2])
    assert crane.number_of_edges() == 7
    assert sorted(dict(crane.degree).values()) == [2, 2, 3, 3, 4]


@pytest.mark.parametrize("edges", [*recipes.PUBLISHED_MOTIFS, recipes.DIR_CRANE_EDGES])
def test_motif_edges_go_from_the_lower_to_the_higher_id(edges):
    assert all(u < v for u, v in edges)
    assert len(set(edges)) == len(edges)


def test_in_degrees_of_one_direction_motifs():
    """What makes house and crane separable on one-direction edges."""
    house, crane = (np.bincount([v for _, v in edges], minlength=5).tolist() for edges in recipes.PUBLISHED_MOTIFS[1:])
    assert house == [0, 1, 1, 1, 3]
    assert crane == [0, 1, 1, 2, 2]


def test_draws_never_change():
    """NumPy keeps seeds and bit streams stable; these values hold for every version."""
    draws = Draws(1, 2, 3)
    assert [draws.unit() for _ in range(2)] == [0.6704722626516632, 0.1110146366693816]
    assert draws.units(2).tolist() == [0.5115090608596802, 0.35617637634277344]


def test_draws_cover_their_range():
    draws = Draws(0)
    values = [draws.below(3) for _ in range(3000)]
    assert np.bincount(values).tolist() == pytest.approx([1000] * 3, abs=110)
    units = Draws(1).units(1000, 4)
    assert units.dtype == np.float32
    assert units.min() >= 0
    assert units.max() < 1
    assert units.mean() == pytest.approx(0.5, abs=0.02)
