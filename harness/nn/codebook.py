"""Vector quantisation with a codebook that follows the data by moving averages."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.nn.cluster import kmeans

_CHUNK = 1 << 22
"""Distances held at a time."""


class Codebook(nn.Module):
    """Replace each row by the nearest of K codes; codes are moving averages of the rows that chose them.

    Van den Oord et al., *Neural Discrete Representation Learning*, NeurIPS 2017, appendix A.1: with n_k rows of sum
    s_k choosing code k, ``size_k <- decay size_k + (1 - decay) n_k``, ``total_k <- decay total_k + (1 - decay) s_k``
    and ``code_k = total_k / size'_k``, where ``size'_k = sum(size) (size_k + eps) / (sum(size) + K eps)``. The update
    follows the look-up, and only in training mode.

    Sizes start at zero and totals at the codes, as in the library ``vector-quantize-pytorch``, so a code that the
    first batch does not choose is at once divided by little more than eps, and is out of reach until decay has brought
    it back. ``init="kmeans"`` and ``revive_below`` are remedies.

    Args:
        size: K.
        dim: d.
        decay: of the moving averages.
        eps: smoothing of the sizes.
        init: ``uniform`` for ``nn.init.kaiming_uniform_`` of a (1, K, d) tensor, i.e. ±sqrt(6 / (K d)), drawn from
            the global generator; ``kmeans`` for the means of the first training batch, or its rows where they are
            fewer than K, over and over.
        revive_below: after each update, codes whose size is smaller become random rows of the batch; 0 for never.
        generator: for k-means and revival.
    """

    codes: Tensor
    totals: Tensor
    sizes: Tensor
    started: Tensor

    def __init__(
        self,
        size: int,
        dim: int,
        *,
        generator: torch.Generator,
        decay: float = 0.9,
        eps: float = 1e-5,
        init: str = "uniform",
        revive_below: float = 0.0,
    ) -> None:
        super().__init__()
        self.decay, self.eps, self.init, self.revive_below = decay, eps, init, revive_below
        self.generator = generator
        codes = nn.init.kaiming_uniform_(torch.empty(1, size, dim))[0]
        self.register_buffer("codes", codes)
        self.register_buffer("totals", codes.clone())
        self.register_buffer("sizes", torch.zeros(size))
        self.register_buffer("started", torch.tensor(False))

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Look up, then update in training mode.

        Args:
            rows: (n, d).

        Returns:
            (n, d) codes whose gradient goes straight through to the rows, and the commitment loss: the mean square
            of ``rows - codes`` over rows and columns, without gradient to the codes; zero in evaluation mode.
        """
        if self.init == "kmeans" and self.training and len(rows) and not self.started:
            self._start(rows.detach())
        ids = self.nearest(rows.detach())
        chosen = self.codes.index_select(0, ids)
        quantised = rows + (chosen - rows).detach()
        if not self.training or not len(rows):
            return quantised, rows.sum() * 0.0
        self._update(rows.detach(), ids)
        return quantised, (chosen - rows).square().mean()

    @torch.no_grad()
    def nearest(self, rows: Tensor) -> Tensor:
        """(n,) the code nearest to each row by Euclidean distance; the first of equally near ones."""
        # |r - c|^2 without |r|^2, which is the same for all codes.
        square = self.codes.square().sum(1)
        part = max(_CHUNK // len(self.codes), 1)
        found = [torch.addmm(square, r, self.codes.t(), alpha=-2.0).argmin(1) for r in torch.split(rows, part)]
        return torch.cat(found) if found else torch.zeros(0, dtype=torch.int64, device=rows.device)

    @torch.no_grad()
    def _start(self, rows: Tensor) -> None:
        size = len(self.codes)
        centres = rows if len(rows) <= size else kmeans(rows, size, generator=self.generator, restarts=1).centres
        self.codes.copy_(centres[torch.arange(size, device=rows.device) % len(centres)])
        # A repeated code that no row chooses counts as one row, so that it stays in place until it is forgotten.
        self.sizes.copy_(torch.bincount(self.nearest(rows), minlength=size).clamp(min=1))
        self.totals.copy_(self.codes * self.sizes.unsqueeze(1))
        self.started.fill_(True)

    @torch.no_grad()
    def _update(self, rows: Tensor, ids: Tensor) -> None:
        size, fresh = len(self.codes), 1 - self.decay
        count = torch.bincount(ids, minlength=size).to(rows.dtype)
        self.sizes.mul_(self.decay).add_(count, alpha=fresh)
        self.totals.mul_(self.decay).add_(torch.zeros_like(self.codes).index_add(0, ids, rows), alpha=fresh)
        whole = self.sizes.sum()
        smooth = whole * (self.sizes + self.eps) / (whole + size * self.eps)
        self.codes.copy_(self.totals / smooth.unsqueeze(1))
        if self.revive_below:
            self._revive(rows)

    def _revive(self, rows: Tensor) -> None:
        dead = (self.sizes < self.revive_below).nonzero().squeeze(1)
        drawn = torch.randint(len(rows), (len(dead),), generator=self.generator).to(rows.device)
        self.codes[dead] = rows[drawn]
        self.sizes[dead] = self.revive_below
        self.totals[dead] = rows[drawn] * self.revive_below
