"""Graphs cut out of arrays that hold a whole set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness import RawGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_DEGREE = 100
"""Degrees from here on share a code, so that hubs of large graphs need no table of their own."""


def cut_graphs(
    x: Array, edge_index: Array, edge_attr: Array | None, nodes: Array, edges: Array, labels: Sequence[Any]
) -> list[RawGraph]:
    """One graph for each label, also of those without nodes.

    Args:
        x: (ΣN, F).
        edge_index: (2, ΣE), ids from 0 in each graph.
        edge_attr: (ΣE, K) or None.
        nodes, edges: how many each graph has.
        labels: of the graphs.
    """
    import numpy as np

    node, edge = (np.concatenate([[0], np.cumsum(counts)]).tolist() for counts in (nodes, edges))
    return [
        RawGraph(
            x=x[node[row] : node[row + 1]],
            edge_index=edge_index[:, edge[row] : edge[row + 1]],
            y=label,
            edge_attr=None if edge_attr is None else edge_attr[edge[row] : edge[row + 1]],
        )
        for row, label in enumerate(labels)
    ]


def degree_codes(sources: Array, total: int) -> Array:
    """(ΣN, 1) number of edges that leave each node, at most :data:`MAX_DEGREE`; ``sources`` count over all graphs."""
    import numpy as np

    return np.minimum(np.bincount(sources, minlength=total), MAX_DEGREE)[:, None]
