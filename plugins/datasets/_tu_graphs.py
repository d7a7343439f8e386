"""The graphs of a TU set: features from label and attribute files, edges with local node ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness import Features, RawGraph
from plugins.datasets._tu_files import Edges, TUFiles, codes, one_hot

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_DEGREE = 100
"""Degrees from here on share a code, so that hubs of large graphs need no table of their own."""


@dataclass(frozen=True)
class TUHeader:
    """What the files hold: ``classes`` and the values of label columns, ascending, and widths of attributes."""

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
