"""A dataset split as a few contiguous tensors; a minibatch is a gather, not a loop over graph objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness.data import Features, RawGraph
from harness.errors import DataError
from harness.graphs.batch import Batch, Outgoing, batch_sizes, chunks, pointer
from harness.graphs.checks import check_graphs

GROUP = "group/"
"""Put before the name of a grouping (``RawGraph.groups``) among the tensors stored for a split."""
PARTS = "parts/"
"""Put before the names of the parts' tensors."""


@dataclass(eq=False)
class PackedGraphs:
    """n graphs, packed.

    Attributes:
        x: (ΣN, F) node features of all graphs, one after the other.
        edge_index: (2, ΣE) *local* node ids, edges of each graph sorted by target, then source.
        node_ptr, edge_ptr: (n + 1,) first node and first edge of each graph.
        edge_attr: (ΣE, K) or None.
        y: (n,) int64 or (n, T) float32 labels, or None where this reader may not see them.
        env: (n,) environment ids, or None.
        parts: the graphs' parts (``RawGraph.parts``), one graph's after the other's, without labels; or None.
        part_ptr: (n + 1,) first part of each graph, or None.
        max_batch_nodes: most nodes of a batch that :meth:`batches` cuts, those of parts not counted; 0 for any.
    """

    x: Tensor
    edge_index: Tensor
    node_ptr: Tensor
    edge_ptr: Tensor
    edge_attr: Tensor | None = None
    y: Any = None
    env: Tensor | None = None
    parts: PackedGraphs | None = None
    part_ptr: Tensor | None = None
    max_batch_nodes: int = 0
    _by_source: Tensor | None = field(default=None, init=False, repr=False)
    _layout: _Layout | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @classmethod
    def pack(
        cls,
        graphs: Sequence[RawGraph],
        node_features: Features | None = None,
        edge_features: Features | None = None,
    ) -> PackedGraphs:
        """Pack graphs without labels, domains and oracle fields (see :func:`order_edges` for the edges' order).

        Args:
            graphs: at least one.
            node_features, edge_features: the dataset's declarations, to check the graphs against; without them
                the graphs are checked against each other.

        Raises:
            DataError: a graph is inconsistent in itself, with the others or with the declarations; the text
                names the graph's number, from 0.
        """
        check_graphs(graphs, node_features, edge_features)
        node_ptr = np.cumsum([0, *(len(graph.x) for graph in graphs)], dtype=np.int64)
        edge_ptr = np.cumsum([0, *(graph.edge_index.shape[1] for graph in graphs)], dtype=np.int64)
        edge_index = np.concatenate([graph.edge_index for graph in graphs], axis=1)
        offset = np.repeat(node_ptr[:-1], np.diff(edge_ptr))
        order = order_edges(edge_index + offset)  # ids ascend from graph to graph, so each graph is sorted in place
        attributes = [graph.edge_attr for graph in graphs if graph.edge_attr is not None]
        parts, part_ptr = _pack_parts(graphs, node_features, edge_features)
        return cls(
            x=torch.from_numpy(np.concatenate([graph.x for graph in graphs])),
            edge_index=torch.from_numpy(edge_index[:, order]),
            node_ptr=torch.from_numpy(node_ptr),
            edge_ptr=torch.from_numpy(edge_ptr),
            edge_attr=torch.from_numpy(np.concatenate(attributes)[order]) if attributes else None,
            parts=parts,
            part_ptr=part_ptr,
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return the present fields by name, those of the parts after ``parts/``; see :meth:`from_tensors`."""
        present = {item.name: getattr(self, item.name) for item in fields(self) if item.init}
        parts = {} if self.parts is None else self.parts.tensors()
        return {
            **{name: value for name, value in present.items() if isinstance(value, Tensor)},
            **{f"{PARTS}{name}": value for name, value in parts.items()},
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> PackedGraphs:
        """Invert :meth:`tensors`."""
        own: dict[str, Any] = {name: value for name, value in tensors.items() if not name.startswith(PARTS)}
        parts = {name.removeprefix(PARTS): value for name, value in tensors.items() if name.startswith(PARTS)}
        return cls(**own, parts=cls.from_tensors(parts) if parts else None)

    def without_labels(self) -> PackedGraphs:
        """Return the same graphs without ``y`` and ``env``."""
        return replace(self, y=None, env=None)

    def to(self, device: torch.device | str) -> PackedGraphs:
        """Return the same graphs on a device: these themselves where they are there already."""
        if torch.device(device) == self.x.device:
            return self
        moved = PackedGraphs.from_tensors({name: value.to(device) for name, value in self.tensors().items()})
        moved.max_batch_nodes = self.max_batch_nodes
        return moved

    def select(self, ids: Tensor) -> PackedGraphs:
        """Gather the graphs at ``ids`` (B,), in that order; a graph may be taken more than once."""
        ids = ids.to(self.x.device)
        nodes, node_ptr = _positions(self.node_ptr, ids)
        edges, edge_ptr = _positions(self.edge_ptr, ids)
        parts, part_ptr = self._select_parts(ids)
        chosen = PackedGraphs(
            x=self.x.index_select(0, nodes),
            edge_index=torch.stack([ends.index_select(0, edges) for ends in self.edge_index]),
            node_ptr=node_ptr,
            edge_ptr=edge_ptr,
            edge_attr=None if self.edge_attr is None else self.edge_attr.index_select(0, edges),
            y=None if self.y is None else self.y.index_select(0, ids),
            env=None if self.env is None else self.env.index_select(0, ids),
            parts=parts,
            part_ptr=part_ptr,
            max_batch_nodes=self.max_batch_nodes,
        )
        chosen._by_source = self._local_order().index_select(0, edges)
        return chosen

    def _select_parts(self, ids: Tensor) -> tuple[PackedGraphs | None, Tensor | None]:
        """Return the parts of the graphs at ``ids``, and the position of each graph's first."""
        if self.parts is None or self.part_ptr is None:
            return None, None
        chosen, part_ptr = _positions(self.part_ptr, ids)
        return self.parts.select(chosen), part_ptr

    def batch(self, ids: Tensor) -> Batch:
        """Gather the graphs at ``ids`` (B,), in that order. For a whole epoch, :meth:`batches` is cheaper."""
        chosen = self.select(ids)
        return chosen._cut(0, len(chosen), ids.to(self.x.device))

    def batches(self, size: int | Sequence[int], order: Tensor | None = None, *, at_least: int = 1) -> Iterator[Batch]:
        """Yield batches of ``size`` graphs; the last may be smaller, and others where ``max_batch_nodes`` says so.

        The graphs are gathered many batches at a time, and each batch is then a slice. Batches may share
        memory: do not write into their tensors.

        Args:
            size: graphs per batch; or of each batch, as :meth:`batch_sizes` gives them.
            order: (m,) ids of the graphs to visit, e.g. a permutation; None for all graphs as they lie.
            at_least: fewest graphs of any batch but the last, even where they have more than ``max_batch_nodes``: 2
                where a batch is trained on.
        """
        sizes = self.batch_sizes(size, order, at_least=at_least) if isinstance(size, int) else size
        everything = torch.arange(len(self), device=self.x.device) if order is None else order.to(self.x.device)
        first = 0
        for chunk in chunks(sizes, in_place=order is None):
            ids = everything[first : first + sum(chunk)]
            chosen = self._between(first, first + len(ids)) if order is None else self.select(ids)
            first += len(ids)
            for start, stop in pairwise(accumulate(chunk, initial=0)):
                yield chosen._cut(start, stop, ids[start:stop])

    def batch_sizes(self, size: int, order: Tensor | None = None, *, at_least: int = 1) -> list[int]:
        """Return the sizes of the :meth:`batches` with the same arguments (see :mod:`harness.graphs.batch`)."""
        nodes = self.node_ptr.diff() if self.max_batch_nodes else None
        if nodes is not None and order is not None:
            nodes = nodes.index_select(0, order.to(nodes.device))
        count = len(self) if order is None else len(order)
        return batch_sizes(count, size, nodes, bound=self.max_batch_nodes, at_least=at_least)

    def _between(self, start: int, stop: int) -> PackedGraphs:
        """Return the graphs from ``start`` up to ``stop``, not copied; for all of them this packing itself."""
        if (start, stop) == (0, len(self)):
            return self
        nodes, edges = (slice(int(ptr[start]), int(ptr[stop])) for ptr in (self.node_ptr, self.edge_ptr))
        parts, part_ptr = self.parts, self.part_ptr
        if parts is not None and part_ptr is not None:
            parts = parts._between(int(part_ptr[start]), int(part_ptr[stop]))
            part_ptr = part_ptr[start : stop + 1] - part_ptr[start]
        found = PackedGraphs(
            x=self.x[nodes],
            edge_index=self.edge_index[:, edges],
            node_ptr=self.node_ptr[start : stop + 1] - nodes.start,
            edge_ptr=self.edge_ptr[start : stop + 1] - edges.start,
            edge_attr=None if self.edge_attr is None else self.edge_attr[edges],
            y=None if self.y is None else self.y[start:stop],
            env=None if self.env is None else self.env[start:stop],
            parts=parts,
            part_ptr=part_ptr,
            max_batch_nodes=self.max_batch_nodes,
        )
        if self._by_source is not None:
            found._by_source = self._by_source[edges]
        return found

    def _cut(self, start: int, stop: int, index: Tensor) -> Batch:
        """Return the graphs from ``start`` up to ``stop`` as a batch."""
        layout = self._whole()
        nodes = slice(layout.nodes[start], layout.nodes[stop])
        edges = slice(layout.edges[start], layout.edges[stop])
        ends = layout.ends[:, edges] - nodes.start
        indptr = layout.indptr[:, nodes.start : nodes.stop + 1] - edges.start
        edge_index = ends[:2]
        parts, parts_of = self._cut_parts(layout.parts[start : stop + 1])
        return Batch(
            x=self.x[nodes],
            edge_index=edge_index,
            edge_attr=None if self.edge_attr is None else self.edge_attr[edges],
            batch=layout.owner[nodes] - start,
            ptr=self.node_ptr[start : stop + 1] - nodes.start,
            indptr=indptr[0],
            index=index,
            y=None if self.y is None else self.y[start:stop],
            env=None if self.env is None else self.env[start:stop],
            parts=parts,
            parts_of=parts_of,
            _outgoing=(edge_index, Outgoing(layout.by_source[edges] - edges.start, indptr[1], ends[2])),
        )

    def _cut_parts(self, bounds: list[int]) -> tuple[Batch | None, Tensor | None]:
        """Return the parts of neighbouring graphs as a batch, and each one's graph, counted from the first of these."""
        if self.parts is None:
            return None, None
        device, counts = self.x.device, torch.tensor(bounds).diff().to(self.x.device)
        index = torch.arange(bounds[0], bounds[-1], device=device)
        owner = torch.repeat_interleave(
            torch.arange(len(counts), device=device), counts, output_size=bounds[-1] - bounds[0]
        )
        return self.parts._cut(bounds[0], bounds[-1], index), owner

    def _local_order(self) -> Tensor:
        """Sort each graph's edges by source: (ΣE,) positions within the graph."""
        if self._by_source is None:
            source = self.edge_index[0] + _spread(self.node_ptr, self.edge_ptr)
            self._by_source = torch.argsort(source, stable=True) - _spread(self.edge_ptr, self.edge_ptr)
        return self._by_source

    def _whole(self) -> _Layout:
        """Return the packing seen as one batch."""
        if self._layout is None:
            source, target = self.edge_index + _spread(self.node_ptr, self.edge_ptr)
            by_source = self._local_order() + _spread(self.edge_ptr, self.edge_ptr)
            num_nodes = self.x.size(0)
            self._layout = _Layout(
                nodes=self.node_ptr.tolist(),
                edges=self.edge_ptr.tolist(),
                parts=[] if self.part_ptr is None else self.part_ptr.tolist(),
                owner=_spread(torch.arange(len(self) + 1, device=self.x.device), self.node_ptr),
                ends=torch.stack([source, target, target.index_select(0, by_source)]),
                by_source=by_source,
                indptr=torch.stack([pointer(target, num_nodes), pointer(source, num_nodes)]),
            )
        return self._layout


@dataclass(frozen=True)
class _Layout:
    """The arrays that batches are cut from; never stored. Ids count through the whole packing.

    Attributes:
        nodes, edges, parts: ``node_ptr``, ``edge_ptr`` and ``part_ptr`` as Python numbers.
        owner: (ΣN,) graph of each node.
        ends: (3, ΣE) source and target of each edge, then the targets in the order of ``by_source``.
        by_source: (ΣE,) positions of the edges, sorted by source.
        indptr: (2, ΣN + 1) first incoming edge of each node, and first outgoing one in ``by_source``.
    """

    nodes: list[int]
    edges: list[int]
    parts: list[int]
    owner: Tensor
    ends: Tensor
    by_source: Tensor
    indptr: Tensor


def _pack_parts(
    graphs: Sequence[RawGraph], node_features: Features | None, edge_features: Features | None
) -> tuple[PackedGraphs | None, Tensor | None]:
    """Return the parts of all graphs and the position of each graph's first; None where no graph has parts."""
    counts = [len(graph.parts) for graph in graphs]
    if not any(counts):
        return None, None
    if 0 in counts:
        raise DataError(f"graph {counts.index(0)}: it has no parts, while others have; give parts to all or to none")
    every = [part for graph in graphs for part in graph.parts]
    try:
        packed = PackedGraphs.pack([replace(part, parts=()) for part in every], node_features, edge_features)
    except DataError as error:
        raise DataError(f"parts, counted through all graphs: {error}") from None
    return packed, torch.from_numpy(np.cumsum([0, *counts], dtype=np.int64))


def order_edges(edge_index: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the permutation that sorts a graph's edges by target, then source."""
    return np.lexsort((edge_index[0], edge_index[1]))


def _spread(values: Tensor, ptr: Tensor) -> Tensor:
    """Repeat each graph's value for each of its items, which begin at ``ptr``; the last value is unused."""
    return torch.repeat_interleave(values[:-1], ptr.diff())


def _positions(ptr: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Return positions of the items of each chosen graph, and the chosen graphs' own pointer."""
    start = ptr.index_select(0, ids)
    count = ptr.index_select(0, ids + 1) - start
    new = torch.zeros(ids.numel() + 1, dtype=torch.int64, device=ptr.device)
    torch.cumsum(count, 0, out=new[1:])
    shift = torch.repeat_interleave(start - new[:-1], count)
    return torch.arange(shift.numel(), device=ptr.device) + shift, new
