"""Draws GOOD-Motif's graphs. Each has a random stream of its own, as in the other base-motif sets."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from harness import RawDataset, RawGraph
from plugins.datasets._recipe import CRANE_EDGES, CYCLE_EDGES, HOUSE_EDGES
from plugins.datasets._shapes import (
    Draws,
    Piece,
    both_directions,
    ground_truth,
    in_drawn_order,
    join,
    ladder,
    motif_piece,
    path,
    star,
    tree,
    wheel,
)
from plugins.datasets.good_motif import CLASSES, LADDER, STAR, TREE, WHEEL, Pool

MOTIFS = (HOUSE_EDGES, CYCLE_EDGES, CRANE_EDGES)
"""In GOOD's order of labels."""
PERTURBATION = 0.05
SPREAD = 5


def _draw_graph(pool: Pool, label: int, label_noise: float, draws: Draws) -> RawGraph:
    kind = _pick(pool.bases, label, pool.strength if pool.tied == "bases" else 0.0, draws)
    size = _pick(pool.sizes, label, pool.strength if pool.tied == "sizes" else 0.0, draws)
    base, motif = make_base(kind, size + draws.below(2 * SPREAD + 1) - SPREAD), motif_piece(MOTIFS[label])
    edges = both_directions(join(base, motif, PERTURBATION, draws))
    redrawn, other = draws.unit(), draws.below(CLASSES)
    return RawGraph(
        x=np.ones((base.nodes + motif.nodes, 1), np.float32),
        edge_index=edges,
        y=other if redrawn < label_noise else label,
        env=pool.env,
        oracle={"base": kind, "motif": label, **ground_truth(base, motif, edges)},
    )


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
    """Draw all pools; the place of a graph in its part says nothing of its label or environment."""
    splits = {}
    for part in dict.fromkeys(pool.part for pool in pools):
        name, placed = zlib.crc32(f"{stream}/{part}".encode()), []
        for number, pool in enumerate(pool for pool in pools if pool.part == part):
            for position in range(pool.graphs):
                draws = Draws(name, seed, number, position)
                placed.append((draws.unit(), _draw_graph(pool, position % CLASSES, label_noise, draws)))
        splits[part] = in_drawn_order(placed)
    return RawDataset(splits)
