"""The text files of a TU graph set, and their graphs as arrays.

Layout of Morris et al., "TUDataset: A collection of benchmark datasets for learning with graphs", GRL+ 2020: one line
per edge, node or graph; nodes and graphs are counted from 1, over the whole set and in order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import DataError, Features
from plugins.datasets._files import is_file, read_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.int64]

REQUIRED = ("A", "graph_indicator", "graph_labels")
_FOREIGN = {int: re.compile(r"[^0-9,\- \t\n]"), float: re.compile(r"[^0-9,\-+.eE \t\n]")}
_LARGEST = 3.4e38


@dataclass(frozen=True)
class Columns:
    """The features of nodes or of edges: the values of each column of labels, ascending, and how many attributes."""

    labels: list[list[int]]
    attributes: int

    @property
    def features(self) -> Features:
        """Codes of the labels; numbers where there are attributes."""
        sizes = tuple(len(known) for known in self.labels)
        if self.attributes:
            return Features("numeric", (self.attributes + sum(sizes),))
        return Features("categorical", sizes) if sizes else Features("none")


@dataclass(frozen=True)
class TUFiles:
    """The files ``NAME_*.txt`` in one folder. Each method raises DataError where a file is not what it should be."""

    folder: Path
    name: str

    def path(self, kind: str) -> Path:
        """The file of a kind, such as ``graph_labels``."""
        return self.folder / f"{self.name}_{kind}.txt"

    def has(self, kind: str) -> bool:
        """Return True if the set has this file."""
        return is_file(self.path(kind))

    def numbers(self, kind: str, rows: int | None = None, columns: int | None = None) -> NDArray[Any]:
        """A file as an (n, k) table: of attributes float64, else int64."""
        path = self.path(kind)
        found = _read_numbers(path, float if kind.endswith("attributes") else int)
        if rows is not None and len(found) != rows:
            raise DataError(f"{path}: {len(found)} lines, but the set has {rows}; the file is truncated or foreign")
        if columns is not None and found.shape[1] != columns:
            raise DataError(f"{path}: {found.shape[1]} numbers in each line, but expected {columns}")
        return found

    def values(self, kind: str) -> list[list[int]]:
        """The different numbers in each column of a file, ascending."""
        import numpy as np

        return [np.unique(column).tolist() for column in self.numbers(kind).T]

    def columns(self, what: str, attributes: bool) -> Columns:
        """What there is of the features of ``node`` or ``edge``."""
        labels, numbers = f"{what}_labels", f"{what}_attributes"
        width = read_text(self.path(numbers)).split("\n")[0].count(",") + 1 if attributes and self.has(numbers) else 0
        return Columns(self.values(labels) if self.has(labels) else [], width)

    def features(self, what: str, columns: Columns, rows: int) -> NDArray[Any]:
        """(rows, F): codes of the labels; where there are attributes, these and then the labels as indicators."""
        import numpy as np

        parts: list[NDArray[Any]] = []
        if columns.attributes:
            parts.append(self.numbers(f"{what}_attributes", rows, columns.attributes).astype(np.float32))
        if columns.labels:
            labels = self.numbers(f"{what}_labels", rows, len(columns.labels)).T
            if columns.attributes:
                parts += [column[:, None] == known for known, column in zip(columns.labels, labels, strict=True)]
            else:
                pairs = zip(columns.labels, labels, strict=True)
                parts.append(np.stack([np.searchsorted(known, column) for known, column in pairs], axis=1))
        return np.concatenate(parts, axis=1)

    @cached_property
    def graph_of(self) -> Table:
        """(n,) graph of each node, counted from 0. A number that is left out is that of a graph without nodes."""
        import numpy as np

        graphs: Table = self.numbers("graph_indicator", columns=1)[:, 0]
        wrong = np.flatnonzero(np.diff(graphs, prepend=1) < 0)
        if len(wrong):
            raise DataError(
                f"{self.path('graph_indicator')}: line {wrong[0] + 1}: found graph {graphs[wrong[0]]}; nodes must be "
                "listed graph by graph, and graphs counted from 1"
            )
        return graphs - 1

    def labels(self) -> Table:
        """(graphs,) labels as they stand in the file, also those of graphs without nodes."""
        found: Table = self.numbers("graph_labels", columns=1)[:, 0]
        if len(found) <= self.graph_of[-1]:
            graphs = self.graph_of[-1] + 1
            raise DataError(f"{self.path('graph_labels')}: {len(found)} lines, but the set has {graphs} graphs")
        return found

    def edges(self) -> tuple[Table, Table, int]:
        """(2, m) node ids from 0, sorted, without self-loops and repetitions; (m,) each one's line; number of lines."""
        import numpy as np

        ends, graphs = self.numbers("A", columns=2) - 1, self.graph_of
        owners = graphs[ends.clip(0, len(graphs) - 1)]
        wrong = np.flatnonzero(((ends < 0) | (ends >= len(graphs))).any(1) | (owners[:, 0] != owners[:, 1]))
        if len(wrong):
            raise DataError(
                f"{self.path('A')}: line {wrong[0] + 1}: an edge from {ends[wrong[0]][0] + 1} to "
                f"{ends[wrong[0]][1] + 1}; expected two of the nodes 1..{len(graphs)}, of one graph"
            )
        lines = np.flatnonzero(ends[:, 0] != ends[:, 1])
        unique, first = np.unique(ends[lines, 0] * len(graphs) + ends[lines, 1], return_index=True)
        return np.stack([unique // len(graphs), unique % len(graphs)]), lines[first], len(ends)


def _read_numbers(path: Path, kind: type[int] | type[float]) -> NDArray[Any]:
    """A table of numbers between commas, of which no line may be blank: a line's number is a node's or graph's."""
    import numpy as np

    text = read_text(path).replace("\r\n", "\n").rstrip()
    lines = text.split("\n")
    try:
        if text and not _FOREIGN[kind].search(text):
            found = np.loadtxt(lines, kind, delimiter=",", comments=None, ndmin=2)
            if len(found) == len(lines) and (kind is int or bool((np.abs(found) < _LARGEST).all())):
                return found
    except ValueError:
        pass
    number = next(number for number, line in enumerate(lines) if not _fits(line, kind, lines[0].count(",")))
    raise DataError(
        f"{path}: line {number + 1}: found {lines[number].strip()[:40]!r}, but expected "
        f"{'whole ' if kind is int else ''}numbers between commas, as many as in line 1"
    )


def _fits(line: str, kind: type[int] | type[float], commas: int) -> bool:
    try:
        numbers = [kind(cell) for cell in line.split(",")]
    except ValueError:
        return False
    largest = 2**63 if kind is int else _LARGEST
    return line.count(",") == commas and not _FOREIGN[kind].search(line) and all(abs(n) < largest for n in numbers)
