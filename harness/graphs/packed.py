"""A dataset split as a few contiguous tensors; a minibatch is a gather, not a loop over graph objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness.data import RawGraph
from harness.graphs.batch import Batch


@dataclass
class PackedGraphs:
    """n graphs, packed.

    Attributes:
        x: (ΣN, F) node features of all graphs, one after the other.
        edge_index: (2, ΣE) *local* node ids, edges of each graph sorted by target, then source.
        node_ptr, edge_ptr: (n + 1,) first node and first edge of each graph.
        edge_attr: (ΣE, K) or None.
        y: (n,) int64 or (n, T) float32 labels, or None where this reader may not see them.
        env: (n,) environment ids, or None.
    """

    x: Tensor
    edge_index: Tensor
    node_ptr: Tensor
    edge_ptr: Tensor
    edge_attr: Tensor | None = None
    y: Tensor | None = None
    env: Tensor | None = None

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @classmethod
    def pack(cls, graphs: Sequence[RawGraph]) -> PackedGraphs:
        """Pack graphs without labels, domains and oracle fields (see :func:`order_edges` for the edges' order)."""
        orders = [order_edges(graph.edge_index) for graph in graphs]
        nodes = np.cumsum([0, *(len(graph.x) for graph in graphs)])
        edges = np.cumsum([0, *(graph.edge_index.shape[1] for graph in graphs)])
        has_attr = bool(graphs) and graphs[0].edge_attr is not None
        return cls(
            x=torch.from_numpy(np.concatenate([graph.x for graph in graphs])),
            edge_index=torch.from_numpy(
                np.concatenate([g.edge_index[:, o] for g, o in zip(graphs, orders, strict=True)], axis=1).astype(
                    np.int64
                )
            ),
            node_ptr=torch.from_numpy(nodes.astype(np.int64)),
            edge_ptr=torch.from_numpy(edges.astype(np.int64)),
            edge_attr=torch.from_numpy(np.concatenate([g.edge_attr[o] for g, o in zip(graphs, orders, strict=True)]))  # type: ignore[index]
            if has_attr
            else None,
        )

    def tensors(self) -> dict[str, Tensor]:
        """The fields that are present, by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    def without_labels(self) -> PackedGraphs:
        """The same graphs without ``y`` and ``env``."""
        return replace(self, y=None, env=None)

    def batch(self, ids: Tensor) -> Batch:
        """Gather the graphs at ``ids`` (B,), in that order."""
        nodes, ptr, owner = _ranges(self.node_ptr, ids)
        edges, _, edge_owner = _ranges(self.edge_ptr, ids)
        edge_index = self.edge_index[:, edges] + ptr[edge_owner]
        indptr = torch.zeros(nodes.numel() + 1, dtype=torch.int64)
        torch.cumsum(torch.bincount(edge_index[1], minlength=nodes.numel()), 0, out=indptr[1:])
        return Batch(
            x=self.x[nodes],
            edge_index=edge_index,
            edge_attr=None if self.edge_attr is None else self.edge_attr[edges],
            batch=owner,
            ptr=ptr,
            indptr=indptr,
            index=ids,
            y=None if self.y is None else self.y[ids],
            env=None if self.env is None else self.env[ids],
        )

    def batches(self, size: int) -> Iterator[Batch]:
        """All graphs in order, ``size`` at a time; the last batch may be smaller."""
        for ids in torch.arange(len(self)).split(size):
            yield self.batch(ids)


def order_edges(edge_index: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The permutation that sorts a graph's edges by target, then source."""
    return np.lexsort((edge_index[0], edge_index[1]))


def _ranges(ptr: Tensor, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Positions of the items of each chosen graph, their new pointer, and the owner of each item."""
    start, count = ptr[ids], ptr[ids + 1] - ptr[ids]
    new = torch.zeros(ids.numel() + 1, dtype=torch.int64)
    torch.cumsum(count, 0, out=new[1:])
    owner = torch.repeat_interleave(torch.arange(ids.numel()), count)
    return torch.arange(int(new[-1])) + (start - new[:-1])[owner], new, owner
