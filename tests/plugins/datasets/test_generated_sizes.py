"""Nodes and edges of every generated dataset, base by base, against figures that follow from its definition.

A base of e edges with c motifs of m edges gives e + c (m + 1) edges before the perturbation, and int(0.05 times that)
pairs are then tried. A pair becomes an edge where one end is of the base's core: the hub of a star, the inner nodes of
a path, all nodes of any other base.
"""

from __future__ import annotations

import numpy as np
import pytest
from base_motif_kit import check_mean

from plugins.datasets.good_motif import GOODMotif
from plugins.datasets.mspmotif import MSPMotif
from plugins.datasets.spmotif import SPMotif
from plugins.datasets.spmotif_large_invariant import LargeInvariant
from plugins.datasets.two_piece import TwoPiece

TREE, LADDER, WHEEL, STAR, PATH = ("tree", "ladder", "wheel", "star", "path")
SPMOTIF, GOOD = (TREE, LADDER, WHEEL), (WHEEL, TREE, LADDER, STAR, PATH)
SPMOTIF_EDGES, DIR_EDGES, GOOD_EDGES = (5, 6, 6), (5, 6, 7), (6, 5, 6)


def base_edges(kind: str, nodes: int) -> int:
    if kind == LADDER:
        return 3 * nodes // 2 - 2
    rim = 0 if kind != WHEEL else nodes - 1 if nodes > 3 else max(nodes - 2, 0)
    return nodes - 1 + rim


def pairs(nodes: int) -> int:
    return nodes * (nodes - 1) // 2


def extra_edges(open_pairs: int, eligible: int, tries: int) -> np.ndarray:
    """Chances of 0, 1 … extra edges: a try hits one of the open pairs, and an eligible one is taken away."""
    chances = np.array([1.0])
    for _ in range(tries):
        taken = np.arange(len(chances))
        hit = chances * (eligible - taken) / (open_pairs - taken)
        chances = np.append(chances - hit, 0.0) + np.append(0.0, hit)
    return chances


def expected_edges(
    kind: str, nodes: int, motif_edges: int, copies: int = 1, perturbation: float = 0.05
) -> tuple[float, float]:
    """Mean and variance of the edges of a graph whose base has ``nodes`` nodes."""
    core = {STAR: 1, PATH: max(nodes - 2, 0)}.get(kind, nodes)
    edges = base_edges(kind, nodes) + copies * (motif_edges + 1)
    everything = nodes + 5 * copies
    reachable = pairs(everything) - pairs(everything - core) - (base_edges(kind, nodes) if core else 0)
    drawn = (pairs(everything) - edges, int(perturbation * edges))
    joined = core / nodes  # the share of base nodes in the core, where the motif may hang
    chances = joined * extra_edges(drawn[0], reachable - copies, drawn[1])
    chances = chances + (1 - joined) * extra_edges(drawn[0], reachable, drawn[1])
    counts = np.arange(len(chances))
    mean = float(chances @ counts)
    return edges + mean, float(chances @ (counts - mean) ** 2)


@pytest.mark.parametrize(
    ("kind", "nodes", "by_hand"),
    [
        (TREE, 15, 22.0),  # 14 + 7, and one try, of which 4 of 169 open pairs are inside the motif
        (LADDER, 22, 39.0),  # 31 + 7, and one try
        (WHEEL, 19, 45.0),  # 36 + 7, and two tries
        (STAR, 71, 77.0),  # 70 + 7, and three tries, of which the 5 pairs of hub and motif are hardly one
        (STAR, 31, 37.0),
        (PATH, 70, 79.0),  # 69 + 7, and three tries
    ],
)
def test_the_expectation_by_hand(kind, nodes, by_hand):
    assert expected_edges(kind, nodes, 6)[0] == pytest.approx(by_hand, abs=0.1)


SETS = {
    "spmotif": (SPMotif(bias=0.4, variant="clean", num_per_class=[400, 200, 200]), SPMOTIF, SPMOTIF_EDGES, 1, 0.05),
    "spmotif dir": (SPMotif(bias=0.4, variant="dir", num_per_class=[100, 50, 100]), SPMOTIF, DIR_EDGES, 1, 0.0),
    "mspmotif": (MSPMotif(bias=0.4, variant="clean", num_per_class=[400, 200, 200]), SPMOTIF, SPMOTIF_EDGES, 1, 0.05),
    "two-piece": (TwoPiece(spurious=0.5, num_per_class=[400, 200, 200]), SPMOTIF, SPMOTIF_EDGES, 1, 0.05),
    "many motifs": (LargeInvariant(bias=0.4, num_per_class=[100, 50, 50]), SPMOTIF, SPMOTIF_EDGES, 10, 0.05),
    **{
        f"good-motif {domain} {shift}": (
            GOODMotif(domain=domain, shift=shift, graphs=3000, seed=1),
            GOOD,
            GOOD_EDGES,
            1,
            0.05,
        )
        for domain in ("basis", "size")
        for shift in ("covariate", "concept", "no_shift")
    },
}


def tree_nodes(heights, branchings=(2, 3)) -> list[int]:
    return [sum(b**level for level in range(h + 1)) for h in heights for b in branchings]


def good_nodes(kinds, middles) -> dict[str, list[int]]:
    widths = [middle + off for middle in middles for off in range(-5, 6)]
    heights = [max(1, int(np.log2(width)) - 1) for width in widths]
    nodes = {
        WHEEL: widths,
        TREE: tree_nodes(heights, (2,)),
        LADDER: [2 * width for width in widths],
        STAR: [width + 1 for width in widths],
        PATH: widths,
    }
    return {kind: nodes[kind] for kind in kinds}


SMALL = {TREE: tree_nodes((0, 1, 2)), LADDER: [16, 18, 20, 22], WHEEL: [15, 16, 17, 18, 19]}
LARGE = {TREE: tree_nodes((3, 4, 5)), LADDER: list(range(60, 100, 2)), WHEEL: list(range(60, 80))}
TWO_PIECE = {**SMALL, TREE: [15, 40]}
TINY = {TREE: [7, 13], LADDER: [10, 12, 14], WHEEL: [10, 11, 12, 13, 14]}
NODES = {
    **{name: {"train": SMALL, "val": SMALL, "test": LARGE} for name in ("spmotif", "spmotif dir", "mspmotif")},
    "two-piece": dict.fromkeys(("train", "val", "test"), TWO_PIECE),
    "many motifs": dict.fromkeys(("train", "val", "test"), TINY),
    "good-motif basis covariate": {
        **dict.fromkeys(("train", "id_val", "id_test"), good_nodes((WHEEL, TREE, LADDER), [10])),
        "ood_val": good_nodes((STAR,), [10]),
        "ood_test": good_nodes((PATH,), [10]),
    },
    "good-motif size covariate": {
        **dict.fromkeys(("train", "id_val", "id_test"), good_nodes(GOOD, [6, 10, 15])),
        "ood_val": good_nodes(GOOD, [30]),
        "ood_test": good_nodes(GOOD, [70]),
    },
    "good-motif basis concept": dict.fromkeys(
        ("train", "id_val", "id_test", "ood_val", "ood_test"), good_nodes((WHEEL, TREE, LADDER), [10])
    ),
    "good-motif size concept": dict.fromkeys(
        ("train", "id_val", "id_test", "ood_val", "ood_test"), good_nodes(GOOD, [10, 40, 70])
    ),
    **{
        f"good-motif {domain} no_shift": dict.fromkeys(("train", "val", "test"), good_nodes(GOOD, [10]))
        for domain in ("basis", "size")
    },
}


@pytest.mark.parametrize("name", SETS)
def test_nodes_and_edges_of_each_base(name):
    dataset, kinds, motif_edges, copies, perturbation = SETS[name]
    splits = dataset.build(None).splits
    assert set(splits) == set(NODES[name])
    for split, graphs in splits.items():
        for kind, expected_nodes in NODES[name][split].items():
            mine = [graph for graph in graphs if kinds[graph.oracle["base"]] == kind]
            nodes = [len(graph.x) - 5 * copies for graph in mine]
            assert set(nodes) <= set(expected_nodes)
            check_mean(nodes, float(np.mean(expected_nodes)))
            directions = 1 if name.split()[0] != "good-motif" else 2
            means, variances = zip(
                *(
                    expected_edges(kind, base, motif_edges[graph.oracle["motif"]], copies, perturbation)
                    for graph, base in zip(mine, nodes, strict=True)
                ),
                strict=True,
            )
            found = sum(graph.edge_index.shape[1] for graph in mine) / directions
            assert abs(found - sum(means)) <= 4 * np.sqrt(sum(variances)) + 1, (split, kind)
        assert {kinds[graph.oracle["base"]] for graph in graphs} == set(NODES[name][split])


def test_extra_edges_of_stars_and_paths_have_an_end_in_the_core():
    splits = GOODMotif(shift="covariate", graphs=3000).build(None).splits
    for part in ("ood_val", "ood_test"):
        drawn = 0
        for graph in splits[part]:
            base, half = len(graph.x) - 5, graph.edge_index.shape[1] // 2
            core = {0} if part == "ood_val" else set(range(1, base - 1))
            extra = graph.edge_index[:, base - 1 + GOOD_EDGES[graph.oracle["motif"]] + 1 : half]
            drawn += extra.shape[1]
            assert all(set(pair) & core for pair in extra.T.tolist())
        assert drawn > 0
