"""A minibatch: the disjoint union of a few graphs, in the form PyG modules expect."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Outgoing(NamedTuple):
    """A batch's edges grouped by source: the transpose of ``indptr``, which the backward pass needs.

    Attributes:
        order: (E,) positions of the edges, sorted by source.
        indptr: (N + 1,) first outgoing edge of each node, as a position in ``order``.
        target: (E,) targets of the edges in ``order``.
    """

    order: Tensor
    indptr: Tensor
    target: Tensor


@dataclass(eq=False)
class Batch:
    """The disjoint union of B graphs with N nodes and E directed edges in all.

    Edges are sorted by target node, so ``indptr`` is their compressed row pointer. To leave edges out, use
    :meth:`keep_edges`, which keeps the two in step.

    Attributes:
        x: (N, F) node features.
        edge_index: (2, E) source and target node.
        edge_attr: (E, K) or None.
        batch: (N,) graph of each node.
        ptr: (B + 1,) first node of each graph.
        indptr: (N + 1,) first incoming edge of each node.
        index: (B,) position of each graph in the split it comes from.
        y: labels, on training batches only.
        env: (B,) environment ids, where the method asked for environments.
        spurious: (B, K, C) quantified class probabilities, for decorrelators.
        parts: the graphs' parts, such as fragments, as a batch of F graphs, where the dataset has them and the learner
            reads them.
        parts_of: (F,) graph of each part, ascending.
        cache: what components keep with a batch for reuse; not carried to another device.

    Raises:
        ValueError: ``indptr`` does not belong to ``edge_index``.
    """

    x: Tensor
    edge_index: Tensor
    batch: Tensor
    ptr: Tensor
    indptr: Tensor
    index: Tensor
    edge_attr: Tensor | None = None
    y: Any = None
    env: Any = None
    spurious: Any = None
    parts: Batch | None = None
    parts_of: Any = None
    cache: dict[str, Any] = field(default_factory=dict, repr=False)
    _outgoing: tuple[Tensor, Outgoing] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # Reading the last entry would make a GPU wait; there only the shape is checked.
        stale = self.indptr.numel() != self.x.size(0) + 1
        if not stale and self.indptr.is_cpu:
            stale = self.indptr[-1].item() != self.edge_index.size(1)
        if stale:
            raise ValueError("indptr does not fit x and edge_index; to leave edges out, use Batch.keep_edges")

    @property
    def num_graphs(self) -> int:
        """Number of graphs, B."""
        return self.ptr.numel() - 1

    @property
    def num_nodes(self) -> int:
        """Number of nodes, N."""
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        """Number of edges, E."""
        return self.edge_index.size(1)

    @property
    def outgoing(self) -> Outgoing:
        """The edges grouped by source; made on first use where the batch did not come with it."""
        # Held next to the edges it was made from, so that `dataclasses.replace` cannot leave a stale one behind.
        if self._outgoing is None or self._outgoing[0] is not self.edge_index:
            self._outgoing = self.edge_index, group_by_source(self.edge_index, self.num_nodes)
        return self._outgoing[1]

    def keep_edges(self, keep: Tensor) -> Batch:
        """Return the same nodes with only the edges where ``keep`` (E,) is true."""
        return self.part(torch.arange(self.num_nodes, device=keep.device), keep.nonzero().squeeze(1))

    def part(self, nodes: Tensor, edges: Tensor) -> Batch:
        """Return a part with as many graphs, its nodes renumbered.

        Args:
            nodes, edges: positions of those that stay, ascending; an edge's ends are among the nodes.
        """
        number = torch.zeros(self.num_nodes, dtype=torch.int64, device=nodes.device)
        number[nodes] = torch.arange(len(nodes), device=nodes.device)
        owner, edge_index = self.batch[nodes], number[self.edge_index[:, edges]]
        return replace(
            self,
            x=self.x[nodes],
            edge_index=edge_index,
            edge_attr=None if self.edge_attr is None else self.edge_attr[edges],
            batch=owner,
            ptr=pointer(owner, self.num_graphs),
            indptr=pointer(edge_index[1], len(nodes)),
            cache={},
            _outgoing=None,
        )

    def to(self, device: torch.device | str) -> Batch:
        """Return the same batch on a device."""
        moved: dict[str, Any] = {
            name: value.to(device) if isinstance(value, (Tensor, Batch)) else value
            for name, value in vars(self).items()
        }
        outgoing = Outgoing(*(part.to(device) for part in self.outgoing))
        return Batch(**{**moved, "cache": {}, "_outgoing": (moved["edge_index"], outgoing)})


def group_by_source(edge_index: Tensor, num_nodes: int) -> Outgoing:
    """Group (2, E) edges by source; edges of one source keep their order."""
    order = torch.argsort(edge_index[0], stable=True)
    return Outgoing(order, pointer(edge_index[0], num_nodes), edge_index[1].index_select(0, order))


def pointer(ids: Tensor, size: int) -> Tensor:
    """Return (size + 1,) row pointer of items that are sorted by their ids in 0..size-1."""
    indptr = torch.zeros(size + 1, dtype=torch.int64, device=ids.device)
    torch.cumsum(torch.bincount(ids, minlength=size), 0, out=indptr[1:])
    return indptr


_AHEAD = 1024  # graphs gathered at once: enough to make the fixed cost of a gather vanish
_IN_PLACE = 8192  # graphs laid out at once where they are visited as they lie: a layout is then kept for reuse


def batch_sizes(count: int, size: int, nodes: Tensor | None = None, *, bound: int = 0, at_least: int = 1) -> list[int]:
    """Return the number of graphs of each batch; their sum is ``count``.

    A batch ends after ``size`` graphs, or before the graph with which it would have more than ``bound`` nodes. It has
    ``at_least`` graphs even where these have more nodes; only the last one may have fewer.

    Args:
        count: graphs.
        size: most graphs per batch.
        nodes: (count,) nodes of each graph; read only where there is a bound.
        bound: most nodes per batch; 0 for any.
        at_least: fewest graphs per batch.
    """
    if not bound or nodes is None:
        full, rest = divmod(count, size)
        return [size] * full + [rest] * (rest > 0)
    total = torch.cumsum(nodes, 0).tolist()  # a search per batch needs no loop over graphs
    sizes: list[int] = []
    start = before = 0
    while start < count:
        stop = bisect_right(total, before + bound, start, min(start + size, count))
        stop = min(max(stop, start + at_least), count)
        sizes.append(stop - start)
        start, before = stop, total[stop - 1]
    return sizes


def chunks(sizes: Sequence[int], *, in_place: bool = False) -> Iterator[list[int]]:
    """Yield neighbouring batches that are gathered, or laid out in place, together."""
    most = _IN_PLACE if in_place else _AHEAD
    chunk: list[int] = []
    graphs = 0
    for size in sizes:
        if chunk and graphs + size > most:
            yield chunk
            chunk, graphs = [], 0
        chunk.append(size)
        graphs += size
    if chunk:
        yield chunk
