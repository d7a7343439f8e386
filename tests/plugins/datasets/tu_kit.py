"""A small TU set for tests, and a reader of such sets in plain Python to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from harness.data import RawGraph

TEXTS = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n6, 7\n7, 6\n8, 8\n8, 9\n9, 8\n8, 9\n",
    "graph_indicator": "1\n1\n1\n2\n2\n3\n3\n4\n4\n4\n",
    "graph_labels": "7\n-1\n7\n-1\n",
    "node_labels": "0\n5\n0\n2\n5\n0\n0\n2\n2\n5\n",
    "node_attributes": "".join(f"{i}.5, {-i}e-1\n" for i in range(10)),
    "edge_labels": "".join(f"{i % 3}\n" for i in range(12)),
}
"""Four graphs of 3, 2, 2 and 3 nodes; the last has a self-loop, a repeated edge and an isolated last node."""


def write_tu(data_dir: Path, changes: Mapping[str, str | None] | None = None, name: str = "TINY") -> Path:
    """The set below a data folder; ``changes`` replaces a file's text, or leaves it out. Returns the files' folder."""
    folder = data_dir / "tu" / name / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    for kind, text in {**TEXTS, **(changes or {})}.items():
        if text is not None:
            (folder / f"{name}_{kind}.txt").write_bytes(text.encode())
    return folder


def read_plainly(folder: Path, name: str = "TINY") -> list[RawGraph]:
    """The graphs that have nodes, with attributes, from files with the rules of the format only.

    Raises:
        ValueError, IndexError, OverflowError: the files break a rule.
    """
    table = {kind: _rows(folder / f"{name}_{kind}.txt", kind == "node_attributes") for kind in TEXTS}
    if any(len({len(row) for row in rows}) != 1 for rows in table.values()):
        raise ValueError("ragged")
    indicator, labels = [row[0] for row in table["graph_indicator"]], [row[0] for row in table["graph_labels"]]
    counts = {"graph_indicator": len(indicator), "graph_labels": len(labels), "A": len(table["A"])}
    wanted = {"node_labels": "graph_indicator", "node_attributes": "graph_indicator", "edge_labels": "A"}
    widths = [len(table[kind][0]) for kind in ("A", "graph_indicator", "graph_labels")]
    numbered = indicator == sorted(indicator) and indicator[0] >= 1 and indicator[-1] <= len(labels)
    if any(len(table[kind]) != counts[other] for kind, other in wanted.items()) or widths != [2, 1, 1] or not numbered:
        raise ValueError("counts")
    classes, one_hot = sorted(set(labels)), _indicators(table["node_labels"])
    if len(classes) < 2:
        raise ValueError("one class")
    edge_codes = _codes(table["edge_labels"])
    edges: dict[tuple[int, int], list[int]] = {}
    for (source, target), code in zip(table["A"], edge_codes, strict=True):
        if min(source, target) < 1 or indicator[source - 1] != indicator[target - 1]:
            raise ValueError("edge")
        if source != target:
            edges.setdefault((source - 1, target - 1), code)
    found = []
    for graph, label in enumerate(labels, start=1):
        nodes = [node for node, owner in enumerate(indicator) if owner == graph]
        if not nodes:
            continue
        own = sorted(edge for edge in edges if edge[0] in nodes)
        x = np.array([[*table["node_attributes"][node], *one_hot[node]] for node in nodes], dtype=np.float32)
        ends = np.array(own, dtype=np.int64).reshape(-1, 2).T - nodes[0]
        attr = np.array([edges[edge] for edge in own], dtype=np.int64).reshape(-1, len(edge_codes[0]))
        found.append(RawGraph(x, ends, classes.index(label), attr))
    return found


def _rows(path: Path, real: bool) -> list[list]:
    text = path.read_bytes().decode().removeprefix("\ufeff").replace("\r\n", "\n").rstrip()
    if set(text) - set("0123456789,- \t\n" + (".eE+" if real else "")):
        raise ValueError("foreign")
    rows = [[(float if real else int)(cell) for cell in line.split(",")] for line in text.split("\n")]
    if any(not -(2**63) < cell < 2**63 or (real and abs(cell) > 3e38) for row in rows for cell in row):
        raise OverflowError("large")
    return rows


def _codes(rows: list[list]) -> list[list[int]]:
    values = [sorted(set(column)) for column in zip(*rows, strict=True)]
    return [[known.index(cell) for known, cell in zip(values, row, strict=True)] for row in rows]


def _indicators(rows: list[list]) -> list[list[int]]:
    values = [sorted(set(column)) for column in zip(*rows, strict=True)]
    return [[int(cell == value) for known, cell in zip(values, row, strict=True) for value in known] for row in rows]
