"""Vector quantisation with a codebook that follows the data by moving averages."""

from __future__ import annotations

import torch
from torch import Tensor, nn

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
    it back.

    Codes start as ``nn.init.kaiming_uniform_`` draws them for a (1, K, d) tensor, ±sqrt(6 / (K d)), from the global
    generator.

    Args:
        size: K.
        dim: d.
        decay: of the moving averages.
        eps: smoothing of the sizes.
    """

    codes: Tensor
    totals: Tensor
    sizes: Tensor

    def __init__(self, size: int, dim: int, *, decay: float = 0.9, eps: float = 1e-5) -> None:
        super().__init__()
        self.decay, self.eps = decay, eps
        codes = nn.init.kaiming_uniform_(torch.empty(1, size, dim))[0]
        self.register_buffer("codes", codes)
        self.register_buffer("totals", codes.clone())
        self.register_buffer("sizes", torch.zeros(size))

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Look up, then update in training mode.

        Args:
            rows: (n, d).

        Returns:
            (n, d) codes whose gradient goes straight through to the rows, and the commitment loss: the mean square
            of ``rows - codes`` over rows and columns, without gradient to the codes; zero in evaluation mode.
        """
        ids = self.nearest(rows.detach())
        chosen = self.codes.index_select(0, ids)
        quantised = rows + (chosen - rows).detach()
        if not self.training or not len(rows):
            return quantised, rows.sum() * 0.0
        self._update(rows.detach(), ids)
        return quantised, (chosen - rows).square().mean()

    @torch.no_grad()
    def nearest(self, rows: Tensor) -> Tensor:
        """Return (n,) the code nearest to each row by Euclidean distance; the first of equally near ones."""
        # |r - c|^2 without |r|^2, which is the same for all codes.
        square = self.codes.square().sum(1)
        part = max(_CHUNK // len(self.codes), 1)
        found = [torch.addmm(square, r, self.codes.t(), alpha=-2.0).argmin(1) for r in torch.split(rows, part)]
        return torch.cat(found) if found else torch.zeros(0, dtype=torch.int64, device=rows.device)

    @torch.no_grad()
    def _update(self, rows: Tensor, ids: Tensor) -> None:
        size, fresh = len(self.codes), 1 - self.decay
        count = torch.bincount(ids, minlength=size).to(rows.dtype)
        self.sizes.mul_(self.decay).add_(count, alpha=fresh)
        self.totals.mul_(self.decay).add_(torch.zeros_like(self.codes).index_add(0, ids, rows), alpha=fresh)
        # Averages of unused codes: subnormal numbers can make a look-up tens of times as long.
        for averages in (self.sizes, self.totals):
            averages.masked_fill_(averages.abs() < torch.finfo(averages.dtype).tiny, 0.0)
        whole = self.sizes.sum()
        smooth = whole * (self.sizes + self.eps) / (whole + size * self.eps)
        self.codes.copy_(self.totals / smooth.unsqueeze(1))
