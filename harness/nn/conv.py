"""Graph convolutions. Edge weights are an ordinary argument, so a mask always reaches the messages."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.data import Features
from harness.graphs import Batch
from harness.nn.front import make_front
from harness.nn.linear import Linear
from harness.nn.norm import BatchNorm
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
        """(N, in_dim) to (N, out_dim); ``edge_weight`` (E,) or None for one everywhere."""
        edge_message = None if self.edge_front is None else self.edge_front(batch.edge_attr)
        return self.mlp((1 + self.eps) * x + propagate(x, batch, edge_weight, edge_message))  # type: ignore[no-any-return]


class GCNConv(nn.Module):
    """Graph convolution with symmetric normalisation and self loops.

    ``out_i = b + h_i / d_i + sum_j w_ij (h_j + e_ij) / sqrt(d_i d_j)`` with ``h = W x`` and ``d_i = 1 + sum_j w_ij``
    over *incoming* edges, also for the source of a message: where edges are stored in one direction, the in-degree
    normalises both ends. A node with a self loop of its own gets no second one. Kipf and Welling,
    *Semi-Supervised Classification with Graph Convolutional Networks*, ICLR 2017, eq. 2; the same as PyG's
    ``GCNConv`` where there is no e.

    Args:
        in_dim, out_dim: widths.
        edge_features: gives e by an embedding or a linear map of its own; None or kind ``none`` for e = 0.
    """

    def __init__(self, in_dim: int, out_dim: int, edge_features: Features | None = None) -> None:
        super().__init__()
        self.lin = Linear(in_dim, out_dim, bias=False)
        nn.init.xavier_uniform_(self.lin.weight)
        self.bias = nn.Parameter(torch.zeros(out_dim))
        self.edge_front = _edge_front(edge_features, out_dim)

    def forward(self, x: Tensor, batch: Batch, edge_weight: Tensor | None = None) -> Tensor:
        """(N, in_dim) to (N, out_dim); ``edge_weight`` (E,) non-negative or None for one everywhere."""
        scale, loop = gcn_scale(batch, x.dtype, edge_weight)
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
        """(N, in_dim) to (N, out_dim); ``edge_weight`` (E,) or None for one everywhere."""
        if edge_weight is None:
            degree = batch.indptr.diff().to(x.dtype).unsqueeze(1)
        else:
            degree = sum_to_targets(edge_weight.unsqueeze(1), batch)
        received = neighbour_sum(self.neighbour(x), batch, edge_weight)
        if self.edge_front is not None:
            extra = self.edge_front(batch.edge_attr)
            received = received + sum_to_targets(
                extra if edge_weight is None else extra * edge_weight.unsqueeze(1), batch
            )
        return self.own(x) + degree * self.centre(x) - received  # type: ignore[no-any-return]


def gcn_scale(batch: Batch, dtype: torch.dtype, edge_weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Each node's (in-degree)^-½ and the weight of the self loop to add, both (N, 1).

    The degree counts that loop. It is 1, or 0 at a node that has a self loop; a degree of 0 gives 0.
    """
    source, target = batch.edge_index
    loop = torch.ones((batch.num_nodes, 1), dtype=dtype, device=target.device)
    loop[source[source == target]] = 0.0
    if edge_weight is None:
        degree = batch.indptr.diff().to(dtype).unsqueeze(1) + loop
    else:
        degree = sum_to_targets(edge_weight.unsqueeze(1), batch) + loop
    positive = degree > 0
    return torch.where(positive, torch.where(positive, degree, 1.0).rsqrt(), 0.0), loop


def _edge_front(features: Features | None, dim: int) -> nn.Module | None:
    return None if features is None or features.kind == "none" else make_front(features, dim)
