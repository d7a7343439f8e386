"""Graphs made of a base and a motif: the pieces, how they are joined, and draws that never change.

The random streams are our own: each graph has one, named by (data set, seed, split, class, number in class), so more
graphs, another class or another split leave all other graphs, and their order, as they are.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.random import PCG64, SeedSequence
from numpy.typing import NDArray

from harness import RawDataset, RawGraph
from plugins.datasets._recipe import CLASSES, LADDER, MOTIF_NODES, TREE, WIDTH, Edges, Recipe, Split

Array = NDArray[np.int64]


class Draws:
    """Uniform draws of one graph, from bits that NumPy promises not to change between versions.

    ``numpy.random.Generator`` makes no such promise for its methods, so the few draws needed here are made from
    the raw 64-bit words.
    """

    def __init__(self, *name: int) -> None:
        self._bits = PCG64(SeedSequence(name))

    def unit(self) -> float:
        """A number in [0, 1) with 53 random bits."""
        return float(self._bits.random_raw() >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        """An integer in 0..bound-1."""
        return int(self.unit() * bound)

    def units(self, *shape: int) -> NDArray[np.float32]:
        """An array of numbers in [0, 1) with 24 random bits each."""
        words = self._bits.random_raw(int(np.prod(shape)))
        return ((words >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)).reshape(shape)


@dataclass(frozen=True)
class Piece:
    """A base or a motif: ``nodes``, and its ``edges`` (2, m) from the lower to the higher id, also as ``pairs``.

    ``core`` are the nodes of a base that the published generators give role 0; each extra edge has an end there.
    """

    nodes: int
    edges: Array
    pairs: frozenset[tuple[int, int]]
    core: range


def _piece(nodes: int, pairs: Sequence[tuple[int, int]], core: range | None = None) -> Piece:
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Piece(nodes, edges, frozenset(pairs), range(nodes) if core is None else core)


@cache
def tree(branching: int, height: int) -> Piece:
    """A balanced tree: each inner node has ``branching`` children; height 0 is a single node."""
    nodes = (branching ** (height + 1) - 1) // (branching - 1)
    return _piece(nodes, [((child - 1) // branching, child) for child in range(1, nodes)])


@cache
def ladder(width: int) -> Piece:
    """Two paths of ``width`` nodes and a rung between each pair of opposite nodes."""
    sides = [(start + i, start + i + 1) for start in (0, width) for i in range(width - 1)]
    return _piece(2 * width, sides + [(i, width + i) for i in range(width)])


@cache
def wheel(size: int) -> Piece:
    """A hub (node 0) joined to each node of a cycle of ``size - 1`` nodes; below four nodes the rim is a path."""
    rim = [(i, i + 1) for i in range(1, size - 1)] + ([(1, size - 1)] if size > 3 else [])
    return _piece(size, [(0, i) for i in range(1, size)] + rim)


@cache
def star(rays: int) -> Piece:
    """A hub (node 0), its core, joined to ``rays`` others."""
    return _piece(rays + 1, [(0, i) for i in range(1, rays + 1)], core=range(1))


@cache
def path(nodes: int) -> Piece:
    """``nodes`` nodes in a row; the two ends are not of its core."""
    return _piece(nodes, [(i, i + 1) for i in range(nodes - 1)], core=range(1, nodes - 1))


@cache
def motif_piece(edges: Edges, copies: int = 1) -> Piece:
    """``copies`` of a motif side by side; copy k is on nodes 5k to 5k + 4."""
    starts = range(0, copies * MOTIF_NODES, MOTIF_NODES)
    return _piece(copies * MOTIF_NODES, [(start + u, start + v) for start in starts for u, v in edges])


def join(base: Piece, motif: Piece, perturbation: float, draws: Draws) -> Array:
    """Edges (2, m), from the lower to the higher id: base, motif after it, what joins them, and the perturbation.

    The first node of each copy of the motif gets an edge to a base node. Then ``perturbation`` times the number of
    edges new pairs are drawn, and become edges where one end is of the base's core: a pair among motif nodes, rays of
    a star or ends of a path uses up its try.
    """
    new = [(draws.below(base.nodes), base.nodes + first) for first in range(0, motif.nodes, MOTIF_NODES)]
    tries = int(perturbation * (len(base.pairs) + len(motif.pairs) + len(new)))
    for _ in range(tries):
        pair = _new_pair(base, motif, new, draws)
        if pair[0] in base.core or pair[1] in base.core:
            new.append(pair)
    return np.concatenate([base.edges, motif.edges + base.nodes, np.array(new, dtype=np.int64).T], axis=1)


def _new_pair(base: Piece, motif: Piece, new: list[tuple[int, int]], draws: Draws) -> tuple[int, int]:
    """Two different nodes without an edge between them, uniformly, the lower id first."""
    nodes = base.nodes + motif.nodes
    while True:
        u, v = sorted((draws.below(nodes), draws.below(nodes)))
        inside = (u - base.nodes, v - base.nodes)
        if u != v and (u, v) not in base.pairs and inside not in motif.pairs and (u, v) not in new:
            return u, v


def both_directions(edges: Array) -> Array:
    """The edges (2, m) and then their reverses, (2, 2m)."""
    return np.concatenate([edges, edges[::-1]], axis=1)


def ground_truth(base: Piece, motif: Piece, edges: Array) -> dict[str, NDArray[np.bool_]]:
    """Return which nodes and which edges are the motif's."""
    return {
        "node_gt": np.arange(base.nodes + motif.nodes) >= base.nodes,
        "edge_gt": edges.min(axis=0) >= base.nodes,
    }


def in_drawn_order(placed: Sequence[tuple[float, RawGraph]]) -> list[RawGraph]:
    """Return graphs sorted by a number that each draws first: a place says nothing of the label."""
    return [graph for _, graph in sorted(placed, key=lambda pair: pair[0])]


def _draw_split(recipe: Recipe, name: str) -> list[RawGraph]:
    split, stream = recipe.splits[name], (zlib.crc32(recipe.name.encode()), recipe.seed, zlib.crc32(name.encode()))
    placed = []
    for label in range(CLASSES):
        for position in range(split.per_class):
            draws = Draws(*stream, label, position)
            placed.append((draws.unit(), _draw_graph(recipe, split, label, draws)))
    return in_drawn_order(placed)


def _draw_graph(recipe: Recipe, split: Split, label: int, draws: Draws) -> RawGraph:
    kind = _draw_paired(label, split.agreement, draws)
    motif = _draw_motif(label, split.label_noise, draws)
    base, copies = _draw_base(kind, split, label, draws), motif_piece(recipe.motifs[motif], recipe.motif_copies)
    edges = join(base, copies, recipe.perturbation, draws)
    if recipe.undirected:
        edges = both_directions(edges)
    return RawGraph(
        x=_draw_features(recipe, split, label, base.nodes + copies.nodes, draws),
        edge_index=edges,
        y=label,
        oracle={"base": kind, "motif": motif, **ground_truth(base, copies, edges)},
    )


def _draw_base(kind: int, split: Split, label: int, draws: Draws) -> Piece:
    if kind == TREE:
        branching = 2 + draws.below(2)
        heights = split.tree_heights[label]
        return tree(branching, heights[draws.below(len(heights))])
    make, sizes = (ladder, split.ladders) if kind == LADDER else (wheel, split.wheels)
    return make(sizes[draws.below(len(sizes))])


def _draw_features(recipe: Recipe, split: Split, label: int, nodes: int, draws: Draws) -> NDArray[np.float32]:
    if recipe.features == "uniform":
        return draws.units(nodes, WIDTH)
    value = _draw_value(label, split.feature_agreement, draws) if recipe.features == "label" else 1
    return np.full((nodes, WIDTH), value, np.float32)


def _draw_paired(label: int, agreement: float, draws: Draws) -> int:
    """The label with probability ``agreement``, else each of the other two alike."""
    u = draws.unit()
    if u < agreement:
        return label
    return (label + (1 if u < (1 + agreement) / 2 else 2)) % CLASSES


def _draw_motif(label: int, noise: float, draws: Draws) -> int:
    redrawn, other = draws.unit(), draws.below(CLASSES)
    return other if redrawn < noise else label


def _draw_value(label: int, agreement: float | None, draws: Draws) -> int:
    """A graph's constant feature: tied to the label, or (none) 0, 1, 2 with the published .33, .33, .34."""
    return min(int(draws.unit() / 0.33), CLASSES - 1) if agreement is None else _draw_paired(label, agreement, draws)


def generate(recipe: Recipe) -> RawDataset:
    """Draw every split of a recipe."""
    return RawDataset({name: _draw_split(recipe, name) for name in recipe.splits})
