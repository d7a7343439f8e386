"""The text files of a TU graph set: what they must hold, and their graphs as arrays.

Layout of Morris et al., "TUDataset: A collection of benchmark datasets for learning with graphs", GRL+ 2020: one line
per edge, node or graph; nodes and graphs are counted from 1, over the whole set and in order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness import DataError, Features, RawGraph
from plugins.datasets._files import is_file, read_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.int64]
    Reals = NDArray[np.float64]

REQUIRED = ("A", "graph_indicator", "graph_labels")
MAX_DEGREE = 100
"""Degrees from here on share a code, so that hubs of large graphs need no table of their own."""
_WHOLE, _REAL = r"[^0-9,\- \t\n]", r"[^0-9,\-+.eE \t\n]"
_BLANK = re.compile(r"^[ \t]*\n", re.MULTILINE)


class Edges(NamedTuple):
    """Edges of a whole set, sorted by source and target, without self-loops and repetitions.

    Attributes:
        ends: (2, m) node ids, counted from 0 over the set.
        lines: (m,) where each edge stands in its file, counted from 0.
        listed: how many lines that file has.
        loops, repeated: how many edges were left out as self-loops and as repetitions.
        one_way: how many have no edge in the other direction.
    """

    ends: Table
    lines: Table
    listed: int
    loops: int
    repeated: int
    one_way: int


@dataclass(frozen=True)
class TUFiles:
    """The files ``NAME_*.txt`` in one folder."""

    folder: Path
    name: str

    def path(self, kind: str) -> Path:
        """The file of a kind, such as ``graph_labels``."""
        return self.folder / f"{self.name}_{kind}.txt"

    def has(self, kind: str) -> bool:
        """Return True if the set has this file."""
        return is_file(self.path(kind))

    def values(self, kind: str) -> list[list[int]]:
        """The different whole numbers in each column of a file, ascending. Without NumPy, for planning.

        Raises:
            DataError: the file is not a table of whole numbers.
        """
        path = self.path(kind)
        rows = dict.fromkeys(_lines(path, _WHOLE))
        table = [_whole_row(path, row) for row in rows]
        widths = sorted({len(row) for row in table})
        if len(widths) > 1:
            raise DataError(f"{path}: some lines have {widths[0]} numbers and some {widths[1]}")
        return [sorted(set(column)) for column in zip(*table, strict=True)]

    def width(self, kind: str) -> int:
        """Number of columns of a file, from its first line. For planning."""
        return len(_lines(self.path(kind), _REAL)[0].split(","))

    def whole(self, kind: str, rows: int | None = None, columns: int | None = None) -> Table:
        """A file as an (n, k) table of whole numbers.

        Raises:
            DataError: it is not such a table, or has other numbers of rows or columns than those given.
        """
        import numpy as np

        found: Table = self._table(kind, _WHOLE, np.int64, rows, columns)
        return found

    def real(self, kind: str, rows: int, columns: int) -> Reals:
        """A file as an (n, k) table of finite numbers.

        Raises:
            DataError: as :meth:`whole`.
        """
        import numpy as np

        found: Reals = self._table(kind, _REAL, np.float64, rows, columns)
        bad = np.flatnonzero(~(np.abs(found) <= np.finfo(np.float32).max).all(1))
        if len(bad):
            raise DataError(f"{self.path(kind)}: line {bad[0] + 1}: a number is too large")
        return found

    @cached_property
    def graph_of(self) -> Table:
        """(n,) graph of each node, counted from 0. A number that is left out is that of a graph without nodes.

        Raises:
            DataError: nodes are not listed graph by graph, or graphs are not counted from 1.
        """
        import numpy as np

        graphs = self.whole("graph_indicator", columns=1)[:, 0]
        wrong = np.flatnonzero(np.diff(graphs, prepend=1) < 0)
        if len(wrong):
            line = wrong[0]
            before = "the first line" if line == 0 else f"graph {graphs[line - 1]}"
            raise DataError(
                f"{self.path('graph_indicator')}: line {line + 1}: graph {graphs[line]} after {before}; nodes must "
                "be listed graph by graph, and graphs counted from 1"
            )
        return graphs - 1

    def labels(self) -> Table:
        """(graphs,) labels as they stand in the file, also those of graphs without nodes.

        Raises:
            DataError: a node's graph has none, or there are several for each.
        """
        found: Table = self.whole("graph_labels", columns=1)[:, 0]
        graphs = int(self.graph_of[-1]) + 1
        if len(found) < graphs:
            raise DataError(
                f"{self.path('graph_labels')}: {len(found)} lines, but the set has {graphs}; the file is truncated or "
                "foreign"
            )
        return found

    def edges(self) -> Edges:
        """The edges.

        Raises:
            DataError: a node does not exist, or an edge joins two graphs.
        """
        import numpy as np

        found = self.whole("A", columns=2) - 1
        self._check_edges(found)
        count = len(self.graph_of)
        lines = np.flatnonzero(found[:, 0] != found[:, 1])
        forward = found[lines, 0] * count + found[lines, 1]
        unique, first = np.unique(forward, return_index=True)
        ends = np.stack([unique // count, unique % count])
        one_way = int((~np.isin(ends[1] * count + ends[0], unique, assume_unique=True)).sum())
        return Edges(ends, lines[first], len(found), len(found) - len(lines), len(lines) - len(unique), one_way)

    def _check_edges(self, found: Table) -> None:
        import numpy as np

        graphs, path = self.graph_of, self.path("A")
        outside = np.flatnonzero(((found < 0) | (found >= len(graphs))).any(1))
        if len(outside):
            raise DataError(
                f"{path}: line {outside[0] + 1}: edge {_edge(found[outside[0]])}, but the nodes are 1..{len(graphs)}"
            )
        across = np.flatnonzero(graphs[found[:, 0]] != graphs[found[:, 1]])
        if len(across):
            one, two = graphs[found[across[0]]] + 1
            raise DataError(
                f"{path}: line {across[0] + 1}: edge {_edge(found[across[0]])} joins graphs {one} and {two}"
            )

    def _table(self, kind: str, foreign: str, dtype: Any, rows: int | None, columns: int | None) -> Any:
        import numpy as np

        path = self.path(kind)
        lines = _lines(path, foreign)
        try:
            table = np.loadtxt(lines, dtype=dtype, delimiter=",", comments=None, ndmin=2)
        except ValueError:
            raise DataError(f"{path}: {_first_fault(lines, dtype)}") from None
        if rows is not None and len(table) != rows:
            raise DataError(f"{path}: {len(table)} lines, but the set has {rows}; the file is truncated or foreign")
        if columns is not None and table.shape[1] != columns:
            raise DataError(f"{path}: {table.shape[1]} numbers in each line, but expected {columns}")
        return table


def codes(table: Table, values: Sequence[Sequence[int]]) -> Table:
    """(n, k) whole numbers as codes 0.. in ascending order of each column's ``values``."""
    import numpy as np

    return np.stack([np.searchsorted(known, column) for known, column in zip(values, table.T, strict=True)], axis=1)


def one_hot(coded: Table, sizes: Sequence[int]) -> NDArray[np.float32]:
    """(n, k) codes as (n, sum of sizes) indicators, column by column."""
    import numpy as np

    found = np.zeros((len(coded), sum(sizes)), dtype=np.float32)
    starts = np.cumsum([0, *sizes[:-1]])
    found[np.arange(len(coded))[:, None], coded + starts] = 1
    return found


def _lines(path: Path, foreign: str) -> list[str]:
    """Lines of a table of numbers, of which only the last may be blank: a line's number is a node's or graph's.

    Raises:
        DataError: a character is ``foreign`` to numbers, or a line is blank.
    """
    text = read_text(path).replace("\r\n", "\n").rstrip()
    if not text:
        raise DataError(f"{path}: no number in it")
    bad = re.search(foreign, text)
    if bad is not None:
        line = text.count("\n", 0, bad.start())
        raise DataError(f"{path}: line {line + 1}: found {text.split(chr(10))[line].strip()[:40]!r}, not numbers")
    blank = _BLANK.search(text)
    if blank is not None:
        raise DataError(f"{path}: line {text.count(chr(10), 0, blank.start()) + 1} is blank; lines would be miscounted")
    return text.split("\n")


def _whole_row(path: Path, line: str) -> list[int]:
    try:
        found = [int(cell) for cell in line.split(",")]
    except ValueError:
        found = []
    if not found or any(abs(value) >= 2**63 for value in found):
        raise DataError(f"{path}: found the line {line.strip()[:40]!r}, but expected whole numbers between commas")
    return found


def _first_fault(lines: Sequence[str], dtype: Any) -> str:
    """Return which line NumPy, whose errors count rows from 0 or from 1, cannot read."""
    width = lines[0].count(",") + 1
    for number, line in enumerate(lines, start=1):
        try:
            fits = len([dtype(cell) for cell in line.split(",")]) == width
        except (ValueError, OverflowError):
            fits = False
        if not fits:
            return (
                f"line {number}: found {line.strip()[:40]!r}, but expected numbers between commas, as many as in line 1"
            )
    return "not a table of numbers"


def _edge(ends: Table) -> str:
    return f"{ends[0] + 1}, {ends[1] + 1}"


@dataclass(frozen=True)
class TUHeader:
    """The contents of the files: ``classes`` and the values of label columns, ascending, and widths of attributes."""

    classes: tuple[int, ...]
    node_labels: list[list[int]]
    edge_labels: list[list[int]]
    node_width: int
    edge_width: int

    @property
    def node_features(self) -> Features:
        """Codes of the labels; numbers where there are attributes; codes of degrees where there is neither."""
        if not self.node_labels and not self.node_width:
            return Features("categorical", (MAX_DEGREE + 1,))
        return _features(self.node_labels, self.node_width)

    @property
    def edge_features(self) -> Features:
        """As for nodes, but nothing where there is neither."""
        return _features(self.edge_labels, self.edge_width)

    def nodes(self, files: TUFiles, edges: Edges) -> NDArray[Any]:
        """(n, F) features of all nodes.

        Raises:
            DataError: a file is no table with a line per node.
        """
        import numpy as np

        count = len(files.graph_of)
        if not self.node_labels and not self.node_width:
            return np.minimum(np.bincount(edges.ends[0], minlength=count), MAX_DEGREE)[:, None]
        return self._table(files, "node", self.node_labels, self.node_width, count)

    def edges(self, files: TUFiles, edges: Edges) -> NDArray[Any] | None:
        """(m, K) features of all edges that are kept.

        Raises:
            DataError: a file is no table with a line per line of the file of edges.
        """
        if not self.edge_labels and not self.edge_width:
            return None
        return self._table(files, "edge", self.edge_labels, self.edge_width, edges.listed)[edges.lines]

    def _table(self, files: TUFiles, what: str, values: list[list[int]], width: int, count: int) -> NDArray[Any]:
        import numpy as np

        parts: list[NDArray[Any]] = []
        if width:
            parts.append(files.real(f"{what}_attributes", count, width).astype(np.float32))
        if values:
            coded = codes(files.whole(f"{what}_labels", count, len(values)), values)
            parts.append(one_hot(coded, [len(known) for known in values]) if width else coded)
        return np.concatenate(parts, axis=1)


def _features(values: list[list[int]], width: int) -> Features:
    sizes = tuple(len(known) for known in values)
    if width:
        return Features("numeric", (width + sum(sizes),))
    return Features("categorical", sizes) if sizes else Features("none")


def tu_graphs(x: NDArray[Any], edge_attr: NDArray[Any] | None, sizes: NDArray[Any], edges: Edges) -> list[RawGraph]:
    """One graph for each of the set, also of those without nodes, without labels; ``sizes`` has their nodes."""
    import numpy as np

    nodes = np.concatenate([[0], np.cumsum(sizes)])
    cuts = np.searchsorted(edges.ends[0], nodes)
    return [
        RawGraph(
            x=x[start:end],
            edge_index=edges.ends[:, first:last] - start,
            y=-1,
            edge_attr=None if edge_attr is None else edge_attr[first:last],
        )
        for start, end, first, last in zip(nodes[:-1], nodes[1:], cuts[:-1], cuts[1:], strict=True)
    ]
