"""Graph convolutions. Edge weights are an ordinary argument, so a mask always reaches the messages."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from harness.data import Features
from harness.graphs import Batch
from harness.nn.front import make_front
from harness.nn.layers import BatchNorm, Linear
from harness.nn.propagate import neighbour_sum, propagate, sum_to_targets


class GINConv(nn.Module):
    """Graph isomorphism convolution with a ReLU on the message.

    ``out_i = MLP((1 + eps) x_i + sum_j w_ij ReLU(x_j + e_ij))``, eps learnt from 0,
    ``MLP = Linear(in, 2 out), BatchNorm, ReLU, Linear(2 out, out)``. Xu et al., *How Powerful are Graph Neural
    Networks?*, ICLR 2019, eq. 4.1; the ReLU and the edge term as in Hu et al., *Strategies for Pre-training Graph
    Neural Networks*, ICLR 2020, and OGB.

    Args:
        in_dim, out_dim: widths.
        edge_features: gives e by an embedding or a linear map of its own; None or kind ``none`` for e = 0.
    """

    def __init__(self, in_dim: int, out_dim: int, edge_features: Features | None = None) -> None:
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(
            Linear(in_dim, 2 * out_dim),
            BatchNorm(2 * out_dim),
            nn.ReLU(inplace=True),
            Linear(2 * out_dim, out_dim),
        )
        self.edge_front = _edge_front(edge_features, in_dim)

    def forward(self, x: Tensor, batch: Batch, edge_weight: Tensor | None = None) -> Tensor:
        """Map (N, in_dim) to (N, out_dim); ``edge_weight`` (E,) or None for one everywhere."""
        edge_message = None if self.edge_front is None else self.edge_front(batch.edge_attr)
        return self.mlp((1 + self.eps) * x + propagate(x, batch, edge_weight, edge_message))  # type: ignore[no-any-return]


class GCNConv(nn.Module):
    """Graph convolution with symmetric normalisation and self loops.

    ``out_i = b + h_i / d_i + sum_j w_ij (h_j + e_ij) / sqrt(d_i d_j)`` with ``h = W x`` and ``d_i = 1 + sum_j w_ij``
    over *incoming* edges, also for the source of a message: where edges are stored in one direction, the in-degree
    normalises both ends. With ``degrees="out"`` the sum is over *outgoing* edges, for both ends again. A node with a
    self loop of its own gets no second one. Kipf and Welling, *Semi-Supervised Classification with Graph Convolutional
    Networks*, ICLR 2017, eq. 2; the same as PyG's ``GCNConv`` where degrees are ``in`` and there is no e.

    Args:
        in_dim, out_dim: widths.
        edge_features: gives e by an embedding or a linear map of its own; None or kind ``none`` for e = 0.
        degrees: which edges of a node make its degree. In undirected graphs it matters where w_ij and w_ji differ.
    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int,
        edge_features: Features | None = None,
        *,
        degrees: Literal["in", "out"] = "in",
    ) -> None:
        super().__init__()
        self.degrees = degrees
        self.lin = Linear(in_dim, out_dim, bias=False)
        nn.init.xavier_uniform_(self.lin.weight)
        self.bias = nn.Parameter(torch.zeros(out_dim))
        self.edge_front = _edge_front(edge_features, out_dim)

    def forward(self, x: Tensor, batch: Batch, edge_weight: Tensor | None = None) -> Tensor:
        """Map (N, in_dim) to (N, out_dim); ``edge_weight`` (E,) non-negative or None for one everywhere."""
        scale, loop = gcn_scale(batch, x.dtype, edge_weight, self.degrees)
        sent = self.lin(x) * scale
        received = neighbour_sum(sent, batch, edge_weight) + loop * sent
        if self.edge_front is not None:
            factor = scale.index_select(0, batch.edge_index[0])
            factor = factor if edge_weight is None else factor * edge_weight.unsqueeze(1)
            received = received + sum_to_targets(self.edge_front(batch.edge_attr) * factor, batch)
        return torch.addcmul(self.bias, received, scale)


class LEConv(nn.Module):
    """Local extremum convolution: a node is compared with its neighbours.

    ``out_i = W_1 x_i + b_1 + sum_j w_ij (W_2 x_i - W_3 x_j - b_3 - e_ij)`` over incoming edges. Ranjan, Sanyal and
    Talukdar, *ASAP: Adaptive Structure Aware Pooling for Learning Hierarchical Graph Representations*, AAAI 2020.
    PyG's ``LEConv`` with W_2, W_3 and b_3 of the opposite sign, where there is no e.

    Args:
        in_dim, out_dim: widths.
        edge_features: gives e by an embedding or a linear map of its own; None or kind ``none`` for e = 0.
    """

    def __init__(self, in_dim: int, out_dim: int, edge_features: Features | None = None) -> None:
        super().__init__()
        self.own = Linear(in_dim, out_dim)
        self.centre = Linear(in_dim, out_dim, bias=False)
        self.neighbour = Linear(in_dim, out_dim)
        self.edge_front = _edge_front(edge_features, out_dim)

    def forward(self, x: Tensor, batch: Batch, edge_weight: Tensor | None = None) -> Tensor:
        """Map (N, in_dim) to (N, out_dim); ``edge_weight`` (E,) or None for one everywhere."""
        degree = weighted_degree(batch, x.dtype, edge_weight)
        received = neighbour_sum(self.neighbour(x), batch, edge_weight)
        if self.edge_front is not None:
            extra = self.edge_front(batch.edge_attr)
            received = received + sum_to_targets(
                extra if edge_weight is None else extra * edge_weight.unsqueeze(1), batch
            )
        return self.own(x) + degree * self.centre(x) - received  # type: ignore[no-any-return]


def gcn_scale(
    batch: Batch,
    dtype: torch.dtype,
    edge_weight: Tensor | None = None,
    degrees: Literal["in", "out"] = "in",
) -> tuple[Tensor, Tensor]:
    """Return each node's degree^-½ and the weight of the self loop to add, both (N, 1).

    The degree counts that loop. It is 1, or 0 at a node that has a self loop; a degree of 0 gives 0.
    """
    source, target = batch.edge_index
    loop = torch.ones((batch.num_nodes, 1), dtype=dtype, device=target.device)
    loop[source[source == target]] = 0.0
    degree = weighted_degree(batch, dtype, edge_weight, degrees) + loop
    positive = degree > 0
    return torch.where(positive, torch.where(positive, degree, 1.0).rsqrt(), 0.0), loop


def weighted_degree(
    batch: Batch, dtype: torch.dtype, edge_weight: Tensor | None = None, degrees: Literal["in", "out"] = "in"
) -> Tensor:
    """Return (N, 1) sum of the weights of each node's incoming or outgoing edges, or their number."""
    if edge_weight is None and degrees == "in":
        return batch.indptr.diff().to(dtype).unsqueeze(1)
    weight = torch.ones(batch.num_edges, dtype=dtype, device=batch.x.device) if edge_weight is None else edge_weight
    end = batch.edge_index[1 if degrees == "in" else 0]
    return weight.new_zeros((batch.num_nodes, 1)).index_add_(0, end, weight.unsqueeze(1))


def _edge_front(features: Features | None, dim: int) -> nn.Module | None:
    return None if features is None or features.kind == "none" else make_front(features, dim)
