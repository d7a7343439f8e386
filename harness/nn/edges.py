"""Edge and node scores: pairs of end points, normalisation within graphs, the scorers, and reverse edges."""

from __future__ import annotations

import itertools
from typing import ClassVar

import torch
from torch import Tensor, nn

from harness.graphs import Batch
from harness.nn.layers import Linear


def edge_ends(h: Tensor, batch: Batch) -> Tensor:
    """Join the (N, d) embeddings of each edge's source and target to (E, 2d)."""
    source, target = batch.edge_index
    return torch.cat([h.index_select(0, source), h.index_select(0, target)], 1)


def instance_norm(values: Tensor, owner: Tensor, num_graphs: int, eps: float = 1e-5) -> Tensor:
    """Standardise each column within each graph; a graph with one row becomes zero.

    Instance normalisation (Ulyanov et al., arXiv:1607.08022) with the rows of a graph as its positions.

    Args:
        values: (M, d) rows such as edges or nodes.
        owner: (M,) graph of each row.
        num_graphs: B.
        eps: added to the (population) variance.
    """
    count = torch.bincount(owner, minlength=num_graphs).clamp(min=1).unsqueeze(1).to(values.dtype)
    zeros = values.new_zeros(num_graphs, values.size(1))
    centred = values - (zeros.index_add(0, owner, values) / count).index_select(0, owner)
    variance = zeros.index_add(0, owner, centred.square()) / count
    return centred * (variance + eps).rsqrt().index_select(0, owner)


def drop(values: Tensor, p: float, training: bool, rng: torch.Generator) -> Tensor:
    """Set each value to zero with probability ``p`` (to 2^-16), and divide the others by 1 - p.

    Srivastava et al., *Dropout*, JMLR 2014. torch draws one number per value, which costs more than the layer before;
    here 64 random bits serve four values.
    """
    if not training or p == 0.0:
        return values
    count, threshold = values.numel(), round(p * 2**16) - 2**15
    words = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None, generator=rng)
    kept = words.view(torch.int16)[:count].view(values.shape) >= threshold
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    return values * (kept.to(values.device, values.dtype) * scale)


class RowScorer(nn.Module):
    """One logit per row: an MLP with ReLU and dropout after hidden layers, rows standardised within their graph.

    The extractor of GSAT (Miao et al., *Interpretable and Generalizable Graph Learning via Stochastic Attention
    Mechanism*, ICML 2022), which GALA uses as well.

    Args:
        width: d, of the node embeddings.
        dropout: after each hidden layer.
        norm: standardise hidden values over the rows of each graph, before the ReLU.
        rng: generator of the dropout, which is then much cheaper (:func:`drop`); None for torch's own.
    """

    widths: ClassVar[tuple[int, ...]]
    """Of the input and of the hidden layers, as multiples of d."""

    def __init__(
        self, width: int, *, dropout: float = 0.0, norm: bool = True, rng: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.hidden = nn.ModuleList(Linear(a * width, b * width) for a, b in itertools.pairwise(self.widths))
        self.last = Linear(self.widths[-1] * width, 1)
        self.dropout = nn.Dropout(dropout)
        self.norm, self.rng = norm, rng

    def score(self, values: Tensor, owner: Tensor, num_graphs: int) -> Tensor:
        """Return (M,) logits of (M, d) rows, whose graphs are ``owner`` (M,)."""
        for layer in self.hidden:
            values = layer(values)
            if self.norm:
                values = instance_norm(values, owner, num_graphs)
            values = torch.relu(values)
            values = self.dropout(values) if self.rng is None else drop(values, self.dropout.p, self.training, self.rng)
        return self.last(values).squeeze(1)  # type: ignore[no-any-return]


class EdgeScorer(RowScorer):
    """One logit per edge from its end points: the MLP [2d, 4d, d, 1]; see :class:`RowScorer`."""

    widths = (2, 4, 1)

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """Return (E,) logits from (N, d) node embeddings."""
        owner = batch.batch.index_select(0, batch.edge_index[0])
        return self.score(edge_ends(h, batch), owner, batch.num_graphs)


class NodeScorer(RowScorer):
    """One logit per node: the MLP [d, 2d, d, 1]; see :class:`RowScorer`."""

    widths = (1, 2, 1)

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """Return (N,) logits from (N, d) node embeddings."""
        return self.score(h, batch.batch, batch.num_graphs)


def reverse_edges(batch: Batch) -> Tensor:
    """Return (E,) position of each edge's reverse, or its own position where the batch has none.

    Of several equal edges each finds the first reverse one. Kept with the batch.
    """
    found: Tensor | None = batch.cache.get("reverse_edges")
    if found is None:
        source, target = batch.edge_index
        code, wanted = source * batch.num_nodes + target, target * batch.num_nodes + source
        ordered, order = torch.sort(code, stable=True)
        place = torch.searchsorted(ordered, wanted).clamp(max=max(code.numel() - 1, 0))
        own = torch.arange(code.numel(), device=code.device)
        found = torch.where(ordered[place] == wanted, order[place], own) if code.numel() else own
        batch.cache["reverse_edges"] = found
    return found


def average_directions(values: Tensor, batch: Batch) -> Tensor:
    """Replace the (E,) values of an edge and its reverse by their mean; an edge without reverse keeps its own."""
    return (values + values.index_select(0, reverse_edges(batch))) / 2
