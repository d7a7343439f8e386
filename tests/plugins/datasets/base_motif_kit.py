"""What tests of base-motif data sets share: structure checks, closed forms and a digest of a data set."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import networkx as nx
import numpy as np

from harness.data import RawDataset, RawGraph

TREE, LADDER, WHEEL = range(3)
MOTIF_EDGES = (5, 6, 6)


def base_nodes(graph: RawGraph) -> int:
    """Nodes of the base."""
    return len(graph.x) - 5


def base_edges(graph: RawGraph) -> int:
    """Edges of the unperturbed base, from its kind and size."""
    nodes = base_nodes(graph)
    return (nodes - 1, 3 * nodes // 2 - 2, 2 * (nodes - 1))[graph.oracle["base"]]


def extra_edges(graph: RawGraph, motif_edges: Sequence[int] = MOTIF_EDGES) -> int:
    """Edges that the perturbation added."""
    return graph.edge_index.shape[1] - base_edges(graph) - motif_edges[graph.oracle["motif"]] - 1


def check_structure(graph: RawGraph, motif_edges: Sequence[int] = MOTIF_EDGES) -> None:
    """A connected simple graph, edges from low to high id, an untouched motif on the last five nodes."""
    source, target = graph.edge_index
    nodes = len(graph.x)
    assert graph.x.dtype == np.float32
    assert graph.x.shape == (nodes, 4)
    assert graph.edge_index.dtype == np.int64
    assert (source < target).all()
    assert len(set(zip(source.tolist(), target.tolist(), strict=True))) == len(source)
    whole = nx.Graph(list(zip(source.tolist(), target.tolist(), strict=True)))
    assert whole.number_of_nodes() == nodes
    assert nx.is_connected(whole)
    assert graph.oracle["node_gt"].tolist() == [False] * (nodes - 5) + [True] * 5
    inside = (source >= nodes - 5) & (target >= nodes - 5)
    assert graph.oracle["edge_gt"].tolist() == inside.tolist()
    assert inside.sum() == motif_edges[graph.oracle["motif"]]
    assert graph.edge_attr is None
    assert graph.env == -1


def check_mean(values: Sequence[float] | np.ndarray, expected: float) -> None:
    """The sample mean is within four standard errors of the expected one."""
    values = np.asarray(values, dtype=float)
    error = max(values.std(ddof=1) / np.sqrt(len(values)), 1e-12)
    assert abs(values.mean() - expected) < 4 * error, (values.mean(), expected, error)


def check_share(hits: Sequence[bool] | np.ndarray, expected: float) -> None:
    """A share is within four standard errors of a probability."""
    hits = np.asarray(hits)
    assert abs(hits.mean() - expected) < 4 * np.sqrt(expected * (1 - expected) / len(hits)), (hits.mean(), expected)


def of_class(graphs: Sequence[RawGraph], label: int) -> list[RawGraph]:
    """The graphs of one class."""
    return [graph for graph in graphs if graph.y == label]


def same(one: RawGraph, other: RawGraph) -> bool:
    """Whether two graphs are equal in every field."""
    return (
        np.array_equal(one.x, other.x)
        and np.array_equal(one.edge_index, other.edge_index)
        and one.y == other.y
        and all(np.array_equal(value, other.oracle[name]) for name, value in one.oracle.items())
    )


def digest(raw: RawDataset) -> str:
    """SHA-256 of all graphs."""
    total = hashlib.sha256()
    for name, graphs in raw.splits.items():
        total.update(name.encode())
        for graph in graphs:
            for array in (graph.x.astype("<f4"), graph.edge_index.astype("<i8"), graph.oracle["edge_gt"]):
                total.update(np.ascontiguousarray(array).tobytes())
            total.update(f"{graph.y},{graph.oracle['base']},{graph.oracle['motif']};".encode())
    return total.hexdigest()
