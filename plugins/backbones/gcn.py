"""GCN: graph convolutional network (Kipf and Welling, *Semi-Supervised Classification with GCNs*, ICLR 2017)."""

import torch
from torch import Tensor, nn

from harness import Batch, Features, Register, hookimpl
from harness.nn import GCNConv, make_front, propagate
from plugins.backbones._stack import Stack


class GCN(Stack):
    """Graph convolutional network, in the form of its authors or in that of OGB's baselines.

    Layers are convolution, ReLU (not after the last), dropout. Flavour ``equad`` is the authors' convolution, with
    symmetric normalisation by in-degrees, self loops included; it reads numeric features directly. ``ogb`` is that of
    Hu et al., *Open Graph Benchmark*, NeurIPS 2020, which CIGA uses as well: a ReLU on each message, a root vector in
    place of self loops, out-degrees; with a linear front before the first and a BatchNorm after each. Unlike a GIN's,
    these convolutions hold no MLP, so both flavours need the ReLU between them. Categorical features are embedded
    first. An edge weight enters the degrees, and edge features, where switched on and present, are added to the message
    by a map per layer.
    """

    name = "gcn"

    @property
    def conv(self) -> type[nn.Module]:
        return OGBConv if self.flavour == "ogb" else GCNConv


class OGBConv(nn.Module):
    """The GCN convolution of OGB's baselines.

    ``out_i = ReLU(h_i + r) / d_i + sum_j w_ij ReLU(h_j + e_ij) / sqrt(d_i d_j)`` over incoming edges j -> i, with
    ``h = W x + b``, a learnt r, standard normal at first, and ``d_i = 1 + sum_j w_ji`` over outgoing edges i -> j. OGB
    has no w; public code that multiplies messages by w leaves it out of d, so that an edge of weight zero still counts.

    Args:
        in_dim, out_dim: widths.
        edge_features: gives e by an embedding or a linear map of its own; None or kind ``none`` for e = 0.
    """

    def __init__(self, in_dim: int, out_dim: int, edge_features: Features | None = None) -> None:
        super().__init__()
        self.lin = nn.Linear(in_dim, out_dim)
        self.root = nn.Parameter(torch.randn(out_dim))
        self.edge_front: nn.Module | None = None
        if edge_features is not None and edge_features.kind != "none":
            self.edge_front = make_front(edge_features, out_dim)

    def forward(self, x: Tensor, batch: Batch, edge_weight: Tensor | None = None) -> Tensor:
        """(N, in_dim) to (N, out_dim); ``edge_weight`` (E,) non-negative or None for one everywhere."""
        h, source = self.lin(x), batch.edge_index[0]
        weight = h.new_ones(batch.num_edges) if edge_weight is None else edge_weight
        degree = h.new_ones(batch.num_nodes).index_add(0, source, weight)
        scale = degree.rsqrt()
        extra = None if self.edge_front is None else self.edge_front(batch.edge_attr)
        received = propagate(h, batch, weight * scale.index_select(0, source), extra)
        return received * scale.unsqueeze(1) + (h + self.root).relu() / degree.unsqueeze(1)


@hookimpl
def bench_register(register: Register) -> None:
    register(GCN)
