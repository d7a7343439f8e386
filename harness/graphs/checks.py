"""Refuses graphs that cannot be packed together, naming the first one at fault."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.data import Array, Features, RawGraph
from harness.errors import DataError

_DTYPES = {"numeric": np.dtype(np.float32), "categorical": np.dtype(np.int64)}


def check_graphs(
    graphs: Sequence[RawGraph], node_features: Features | None = None, edge_features: Features | None = None
) -> None:
    """Check each graph in itself, against the first one and against the declarations, where given.

    Raises:
        DataError: there is no graph, or one is at fault; the text names its number, from 0.
    """
    if not graphs:
        raise DataError("there are no graphs to pack")
    for number, graph in enumerate(graphs):
        try:
            _check_one(graph)
            _check_alike("node", graph.x, graphs[0].x)
            _check_alike("edge", graph.edge_attr, graphs[0].edge_attr)
            _check_declared("node", graph.x, node_features)
            _check_declared("edge", graph.edge_attr, edge_features)
        except ValueError as error:
            raise DataError(f"graph {number}: {error}") from None


def _check_one(graph: RawGraph) -> None:
    _check_array("node", graph.x)
    if not len(graph.x):
        raise ValueError("it has no nodes")
    edges = graph.edge_index
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype != np.int64:
        raise ValueError(f"edge_index must be (2, m) int64, found {edges.shape} {edges.dtype}")
    if edges.size and (edges.min() < 0 or edges.max() >= len(graph.x)):
        raise ValueError(
            f"edge_index has the nodes {edges.min()} to {edges.max()}, but the graph has {len(graph.x)} nodes"
        )
    if graph.edge_attr is not None:
        _check_array("edge", graph.edge_attr)
        if len(graph.edge_attr) != edges.shape[1]:
            raise ValueError(f"{len(graph.edge_attr)} rows of edge features for {edges.shape[1]} edges")


def _check_array(what: str, values: Array) -> None:
    if values.ndim != 2 or values.dtype not in _DTYPES.values():
        raise ValueError(f"{what} features must be 2-D float32 or int64, found {values.shape} {values.dtype}")
    if values.dtype == np.float32 and not np.isfinite(values).all():
        raise ValueError(f"{what} features hold NaN or infinity")


def _check_alike(what: str, values: Array | None, first: Array | None) -> None:
    if _told(values) != _told(first):
        raise ValueError(f"{what} features: {_told(values)}; those of graph 0: {_told(first)}")


def _told(values: Array | None) -> str:
    return "none" if values is None else f"{values.shape[1]} columns of {values.dtype}"


def _check_declared(what: str, values: Array | None, declared: Features | None) -> None:
    if declared is None:
        return
    categorical = declared.kind == "categorical"
    width = len(declared.sizes) if categorical else sum(declared.sizes)
    found = 0 if values is None else values.shape[1]
    if found != width or (values is not None and values.dtype != _DTYPES.get(declared.kind, values.dtype)):
        raise ValueError(f"{what} features: {_told(values)}; the dataset declares {width} columns, {declared.kind}")
    if categorical and values is not None and values.size:
        _check_codes(what, values, declared.sizes)


def _check_codes(what: str, values: Array, sizes: tuple[int, ...]) -> None:
    wrong = (values.min(0) < 0) | (values.max(0) >= np.asarray(sizes))
    if wrong.any():
        column = int(wrong.argmax())
        raise ValueError(
            f"{what} feature {column} has codes {values[:, column].min()} to {values[:, column].max()}, "
            f"the dataset declares 0 to {sizes[column] - 1}"
        )
