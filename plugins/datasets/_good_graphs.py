"""Draws GOOD-Motif's graphs. Each has a random stream of its own, as in the other base-motif sets."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness import RawDataset, RawGraph
from plugins.datasets._good_pools import CLASSES, LADDER, STAR, TREE, WHEEL, Pool
from plugins.datasets._recipe import CRANE_EDGES, CYCLE_EDGES, HOUSE_EDGES
from plugins.datasets._shapes import Draws, Piece, both_directions, join, ladder, motif_piece, path, star, tree, wheel

MOTIFS = (HOUSE_EDGES, CYCLE_EDGES, CRANE_EDGES)
"""In GOOD's order of labels."""
PERTURBATION = 0.05
SPREAD = 5


class Generator:
    """Draws the graphs of pools; keeps the pieces it has met, as there are few different ones."""

    def __init__(self, stream: str, seed: int, label_noise: float) -> None:
        self._stream, self._seed, self._noise = stream, seed, label_noise
        self._motifs = [motif_piece(edges) for edges in MOTIFS]
        self._bases: dict[tuple[int, int], Piece] = {}

    def pool(self, pool: Pool, number: int) -> list[tuple[float, RawGraph]]:
        """Graphs of the part's pool ``number``, each with the number in [0, 1) that it is to be sorted by."""
        name = zlib.crc32(f"{self._stream}/{pool.part}".encode())
        placed = []
        for position in range(pool.graphs):
            draws = Draws(name, self._seed, number, position)
            placed.append((draws.unit(), self._graph(pool, position % CLASSES, draws)))
        return placed

    def _graph(self, pool: Pool, motif: int, draws: Draws) -> RawGraph:
        kind = _pick(pool.bases, motif, pool.strength if pool.tied == "bases" else 0.0, draws)
        size = _pick(pool.sizes, motif, pool.strength if pool.tied == "sizes" else 0.0, draws)
        base = self._base(kind, size + draws.below(2 * SPREAD + 1) - SPREAD)
        edges = both_directions(join(base, self._motifs[motif], PERTURBATION, draws))
        redrawn, other = draws.unit(), draws.below(CLASSES)
        nodes = base.nodes + self._motifs[motif].nodes
        return RawGraph(
            x=np.ones((nodes, 1), np.float32),
            edge_index=edges,
            y=other if redrawn < self._noise else motif,
            env=pool.env,
            oracle={
                "base": kind,
                "motif": motif,
                "node_gt": np.arange(nodes) >= base.nodes,
                "edge_gt": edges.min(axis=0) >= base.nodes,
            },
        )

    def _base(self, kind: int, width: int) -> Piece:
        if (kind, width) not in self._bases:
            self._bases[kind, width] = make_base(kind, width)
        return self._bases[kind, width]


def make_base(kind: int, width: int) -> Piece:
    """A base of GOOD's kind and width: wheel, path and (twice that) ladder have ``width`` nodes, a star one more.

    A tree is binary, of height ``max(1, floor(log2(width)) - 1)``.
    """
    if kind == TREE:
        return tree(2, max(1, width.bit_length() - 2))
    return {WHEEL: wheel, LADDER: ladder, STAR: star}.get(kind, path)(width)


def _pick(items: Sequence[int], motif: int, strength: float, draws: Draws) -> int:
    """The motif's own item with probability ``strength``, else any, uniformly."""
    tied, other = draws.unit(), draws.below(len(items))
    return items[motif] if tied < strength else items[other]


def generate(stream: str, seed: int, pools: Sequence[Pool], label_noise: float) -> RawDataset:
    """Draw all pools; the place of a graph in its part says nothing of its label or environment.

    Args:
        stream: name of the random streams.
        seed: 0 to 2³²-1.
        pools: what to draw.
        label_noise: probability that a label is drawn anew.
    """
    generator = Generator(stream, seed, label_noise)
    placed: dict[str, list[tuple[float, RawGraph]]] = {}
    numbers: dict[str, int] = {}
    for pool in pools:
        number = numbers.get(pool.part, 0)
        placed.setdefault(pool.part, []).extend(generator.pool(pool, number))
        numbers[pool.part] = number + 1
    splits = {part: [graph for _, graph in sorted(graphs, key=lambda pair: pair[0])] for part, graphs in placed.items()}
    facts = {part: _measure(graphs) for part, graphs in splits.items() if "test" not in part}
    return RawDataset(splits=splits, facts={"splits": facts})


def _measure(graphs: Sequence[RawGraph]) -> dict[str, Any]:
    agreement = np.mean([graph.y == graph.oracle["motif"] for graph in graphs])
    return {"graphs": len(graphs), "motif_agreement": round(float(agreement), 4)}
