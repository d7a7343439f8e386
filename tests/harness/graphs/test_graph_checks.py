"""Graphs that cannot be packed are refused, and the message names the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness import DataError, Features, PackedGraphs, RawGraph

NUMERIC = Features("numeric", (2,))
CODES = Features("categorical", (3, 4))


def good(**changes: Any) -> RawGraph:
    fields = {
        "x": np.ones((3, 2), dtype=np.float32),
        "edge_index": np.array([[0, 1], [1, 2]], dtype=np.int64),
        "y": 0,
        "edge_attr": None,
    }
    return RawGraph(**{**fields, **changes})


FAULTS = {
    "node outside the graph": (
        good(edge_index=np.array([[0], [3]])),
        "has the nodes 0 to 3, but",
    ),
    "negative node": (good(edge_index=np.array([[-1], [0]])), "has the nodes -1 to 0"),
    "edges transposed": (good(edge_index=np.zeros((5, 2), dtype=np.int64)), r"\(2, m\) int64, found \(5, 2\)"),
    "edges of another type": (good(edge_index=np.zeros((2, 0), dtype=np.float64)), "found .* float64"),
    "no nodes": (good(x=np.ones((0, 2), dtype=np.float32), edge_index=np.zeros((2, 0), dtype=np.int64)), "no nodes"),
    "another width": (good(x=np.ones((3, 5), dtype=np.float32)), "5 columns of float32; those of graph 0: 2"),
    "another type": (good(x=np.ones((3, 2), dtype=np.int64)), "columns of int64; those of graph 0"),
    "double precision": (good(x=np.ones((3, 2))), "float32 or int64, found .* float64"),
    "flat features": (good(x=np.ones(3, dtype=np.float32)), "2-D"),
    "not a number": (good(x=np.full((3, 2), np.nan, dtype=np.float32)), "NaN"),
    "edge features here only": (
        good(edge_attr=np.ones((2, 1), dtype=np.float32)),
        "1 columns of float32; those of graph 0: none",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_graph_is_named(name: str) -> None:
    graph, message = FAULTS[name]
    with pytest.raises(DataError, match=f"^graph 2: .*{message}"):
        PackedGraphs.pack([good(), good(), graph, good()])


def test_edge_features_are_given_to_all_or_none_whichever_comes_first() -> None:
    bare, rich = good(), good(edge_attr=np.ones((2, 1), dtype=np.float32))
    for graphs in ([bare, rich], [rich, bare]):
        with pytest.raises(DataError, match=r"graph 1: edge features: .* those of graph 0: "):
            PackedGraphs.pack(graphs)


def test_edge_features_must_match_the_edges() -> None:
    with pytest.raises(DataError, match="graph 0: 5 rows of edge features for 2 edges"):
        PackedGraphs.pack([good(edge_attr=np.ones((5, 1), dtype=np.float32))])


def test_no_graphs() -> None:
    with pytest.raises(DataError, match="no graphs"):
        PackedGraphs.pack([])


def codes(*rows: tuple[int, int]) -> RawGraph:
    return good(x=np.array(rows, dtype=np.int64))


def test_declared_features_are_checked() -> None:
    PackedGraphs.pack([good()], NUMERIC, Features("none"))
    PackedGraphs.pack([codes((0, 0), (2, 3), (1, 1))], CODES)
    PackedGraphs.pack([good(x=np.ones((3, 0), dtype=np.float32))], Features("none"))
    wrong = [
        (
            [good()],
            Features("numeric", (3,)),
            None,
            "the dataset declares 3 columns, numeric",
        ),
        ([good()], CODES, None, "declares 2 columns, categorical"),
        ([good()], NUMERIC, Features("numeric", (1,)), "edge features: none; the dataset declares 1 columns, numeric"),
        ([good()], Features("none"), None, "declares 0 columns, none"),
        ([codes((0, 0), (2, 4), (1, 1))], CODES, None, "node feature 1 has codes 0 to 4, the dataset declares 0 to 3"),
        ([codes((0, 0), (-1, 3), (1, 1))], CODES, None, "node feature 0 has codes -1 to 1"),
    ]
    for graphs, nodes, edges, message in wrong:
        with pytest.raises(DataError, match=f"graph 0: .*{message}"):
            PackedGraphs.pack(graphs, nodes, edges)
