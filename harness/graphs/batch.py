"""A minibatch: the disjoint union of a few graphs, in the form PyG modules expect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass
class Batch:
    """The disjoint union of B graphs with N nodes and E directed edges in all.

    Edges are sorted by target node, so ``indptr`` is their compressed row pointer.

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
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def num_graphs(self) -> int:
        """B."""
        return self.ptr.numel() - 1

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        """E."""
        return self.edge_index.size(1)

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on a device."""
        moved = {name: value.to(device) if isinstance(value, Tensor) else value for name, value in vars(self).items()}
        return Batch(**{**moved, "cache": {}})
