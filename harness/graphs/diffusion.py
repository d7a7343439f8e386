"""Diffusion of each graph by itself, as padded dense blocks; computed once per split.

The diffusion of a batch is block-diagonal, so each graph is diffused alone: O(Σ n_g³) instead of O((Σ n_g)³) time.
The diffusion of a small connected graph is nearly complete, which is why it is kept and multiplied dense.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from harness.graphs.batch import Batch
from harness.graphs.packed import PackedGraphs

_CHUNK = 2**20
"""Most numbers in one padded block tensor while diffusing: 8 MB in float64, of which a few are alive at once."""
_ROUND = 8
"""While diffusing, sizes are padded to multiples of this, so that a graph's result depends on its own size only."""


@dataclass(frozen=True)
class Diffusion:
    """The operator to compute of each graph.

    With Â the adjacency plus one self loop per node (repeated edges add up, so a node that has a self loop gets a
    double one), D the sums of what *enters* each node, and T = D^-½ Â D^-½:

    - ``ppr``: personalised PageRank, S = α (I - (1 - α) T)^-1;
    - ``heat``: the heat kernel, S = exp(t (T - I)), the exponential of a matrix and not of its entries.

    Entries of S below ``eps`` are dropped, and the rest is normalised as Â was, by its own sums. Gasteiger,
    Weißenberger and Günnemann, *Diffusion Improves Graph Learning*, NeurIPS 2019, eqs. 1-3; used as a view by
    Hassani and Khasahmadi, *Contrastive Multi-View Representation Learning on Graphs*, ICML 2020, eqs. 1-3.

    Attributes:
        kind: ``ppr`` or ``heat``.
        alpha: restart probability of ``ppr``.
        t: time of ``heat``.
        eps: absolute threshold; an entry equal to it is kept.
        transition: ``symmetric`` as above, or ``column``: T = Â D^-1.
        weighted: False keeps the pattern only, every kept entry being 1.
        normalise: False leaves out the second normalisation.
    """

    kind: Literal["ppr", "heat"]
    alpha: float = 0.2
    t: float = 5.0
    eps: float = 1e-4
    transition: Literal["symmetric", "column"] = "symmetric"
    weighted: bool = True
    normalise: bool = True


def adjacency_blocks(batch: Batch, width: int) -> Tensor:
    """Return (B, width, width) float64 adjacency of each graph: entry (source, target) counts the edges."""
    owner = batch.batch[batch.edge_index[0]]
    source, target = batch.edge_index - batch.ptr[owner]
    flat = (owner * width + source) * width + target
    counts = torch.bincount(flat, minlength=batch.num_graphs * width * width)
    return counts.reshape(batch.num_graphs, width, width).to(torch.float64)


def diffuse(adjacency: Tensor, sizes: Tensor, recipe: Diffusion) -> Tensor:
    """Diffuse padded graphs.

    Args:
        adjacency: (B, w, w), entry (source, target); rows and columns from a graph's size on are zero.
        sizes: (B,) number of nodes of each graph, isolated ones included.
        recipe: what to compute.

    Returns:
        (B, w, w), entry (source, target), zero in the padding.
    """
    inside = torch.arange(adjacency.size(1), device=sizes.device) < sizes.unsqueeze(1)
    transition = _normalised(adjacency + torch.diag_embed(inside.to(adjacency.dtype)), recipe.transition)
    identity = torch.eye(adjacency.size(1), dtype=adjacency.dtype, device=adjacency.device)
    if recipe.kind == "ppr":
        spread = recipe.alpha * torch.linalg.inv(identity - (1 - recipe.alpha) * transition)
    else:
        spread = torch.linalg.matrix_exp(recipe.t * (transition - identity))
    kept: Tensor = (spread >= recipe.eps) & inside.unsqueeze(2) & inside.unsqueeze(1)
    if not recipe.weighted:
        return kept.to(adjacency.dtype)
    spread = spread * kept
    return _normalised(spread, recipe.transition) if recipe.normalise else spread


def _normalised(matrix: Tensor, how: str) -> Tensor:
    entering = matrix.sum(1)
    present = entering > 0
    if how == "column":
        return matrix * torch.where(present, entering.reciprocal(), 0.0).unsqueeze(1)
    scale = torch.where(present, entering.rsqrt(), 0.0)
    return scale.unsqueeze(2) * matrix * scale.unsqueeze(1)


class DiffusedGraphs:
    """The diffusion of every graph of a split, computed once and kept in float32 without padding (Σ n_g² numbers).

    It is computed and kept on the CPU.

    Args:
        graphs: the split.
        recipe: what to compute.
        budget: above this many numbers nothing is kept, and :meth:`blocks` computes what it is asked for.
    """

    def __init__(self, graphs: PackedGraphs, recipe: Diffusion, budget: int = 2**26) -> None:
        self.recipe, self.device = recipe, graphs.x.device
        self._graphs = graphs.to("cpu")
        sizes = self._graphs.node_ptr.diff()
        self._kept = self._operators(torch.arange(len(graphs))) if int((sizes**2).sum()) <= budget else None

    def blocks(self, ids: Tensor) -> Tensor:
        """Return the operators of the graphs at ``ids`` (B,): (B, w, w) float32, w the largest size among them.

        Entry (target, source), zero in the padding: ``blocks @ nodes`` sums into each target.
        """
        operators = self._operators(ids.cpu()) if self._kept is None else [self._kept[i] for i in ids.tolist()]
        width = max(len(operator) for operator in operators)
        out = np.zeros((len(operators), width, width), dtype=np.float32)
        for block, operator in zip(out, operators, strict=True):  # one copy each: ten times as fast as a gather
            block[: len(operator), : len(operator)] = operator
        return torch.from_numpy(out).to(self.device)

    def _operators(self, ids: Tensor) -> list[NDArray[np.float32]]:
        """Return (n_g, n_g) for each of the graphs, entry (target, source)."""
        found: list[Any] = [None] * len(ids)
        sizes = self._graphs.node_ptr.diff()[ids]
        for part in by_size(sizes, _CHUNK):
            adjacency = adjacency_blocks(self._graphs.batch(ids[part]), _padded(sizes[part]))
            spread = diffuse(adjacency, sizes[part], self.recipe).transpose(1, 2).numpy()
            for position, block, size in zip(part.tolist(), spread, sizes[part].tolist(), strict=True):
                found[position] = block[:size, :size].astype(np.float32, order="C")
        return found


def batch_blocks(batch: Batch, recipe: Diffusion) -> Tensor:
    """Compute the operators of a batch's graphs, as :meth:`DiffusedGraphs.blocks` gives them, from its edges."""
    owner = batch.batch[batch.edge_index[1]]
    edge_ptr = batch.indptr[batch.ptr]
    graphs = PackedGraphs(batch.x, batch.edge_index - batch.ptr[owner], batch.ptr, edge_ptr)
    return DiffusedGraphs(graphs, recipe, budget=0).blocks(torch.arange(batch.num_graphs))


def by_size(sizes: Tensor, limit: int) -> Iterator[Tensor]:
    """Yield positions of graphs of like size, at most so many that their padded blocks fit ``limit`` numbers."""
    order = torch.argsort(sizes, stable=True)
    widths, counts = torch.unique_consecutive(-(-sizes[order] // _ROUND), return_counts=True)
    for width, group in zip(widths.tolist(), torch.split(order, counts.tolist()), strict=True):
        yield from torch.split(group, max(1, limit // (width * _ROUND) ** 2))


def _padded(sizes: Tensor) -> int:
    return -(-int(sizes.max()) // _ROUND) * _ROUND
