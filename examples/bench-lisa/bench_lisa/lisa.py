"""LISA: mix graphs that differ in environment or in label alone (Yao et al., ICML 2022)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from harness import Baseline, Batch, Register, hookimpl, hparam
from torch import Tensor


class LISA(Baseline):
    """Mixup of graph embeddings between partners that are chosen to cancel the spurious feature.

    Yao, Wang, Li, Zhang, Liang, Zou and Finn, *Improving Out-of-Distribution Robustness via Selective
    Augmentation*, ICML 2022. In a share ``same_label`` of the batches each graph i gets a partner j of its own
    label from another environment (their intra-label LISA), in the others one of its own environment with
    another label (intra-domain LISA). With l drawn from Beta(alpha, alpha) for each pair,

        h = l h_i + (1 - l) h_j,    loss = l CE(f(h), y_i) + (1 - l) CE(f(h), y_j),

    where h_i is the embedding of graph i and f the head. A graph without a partner in its batch is left as it is,
    and so is one without an environment.
    """

    name = "lisa"
    needs = frozenset({"environments"})
    tasks = frozenset({"binary", "multiclass"})

    same_label: float = hparam(
        0.5,
        low=0.0,
        high=1.0,
        search=[0.0, 0.5, 1.0],
        help="share of batches that mix within a label; the others mix within an environment",
    )
    alpha: int = hparam(2, low=1, help="both parameters of the Beta distribution of the mixing share")

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """The mixed cross-entropy."""
        within_label = float(torch.rand((), generator=self.rng)) < self.same_label
        partner = partners(batch.y, batch.env, within_label=within_label, rng=self.rng)
        share = beta(len(partner), self.alpha, self.rng).to(partner.device)
        share = share.masked_fill(partner == own_positions(batch.y), 1.0)
        h = self.embed(batch)
        logits = self.head(share[:, None] * h + (1 - share[:, None]) * h[partner])
        own = F.cross_entropy(logits, batch.y, reduction="none")
        other = F.cross_entropy(logits, batch.y[partner], reduction="none")
        return {"erm": (share * own + (1 - share) * other).mean()}


def partners(y: Tensor, env: Tensor, *, within_label: bool, rng: torch.Generator) -> Tensor:
    """(B,) a partner of each graph, drawn evenly from those that are allowed; the graph itself where none is.

    Args:
        y: (B,) labels.
        env: (B,) environments, -1 for none.
        within_label: partners of the same label and another environment; else the other way round.
    """
    alike, apart = (y, env) if within_label else (env, y)
    allowed = (alike[:, None] == alike) & (apart[:, None] != apart) & (env >= 0)[:, None] & (env >= 0)
    draw = torch.rand(allowed.shape, generator=rng).to(y.device).masked_fill(~allowed, -1.0)
    return torch.where(allowed.any(1), draw.argmax(1), own_positions(y))


def own_positions(y: Tensor) -> Tensor:
    """(B,) 0, 1, 2 …: each graph as its own partner."""
    return torch.arange(len(y), device=y.device)


def beta(count: int, alpha: int, rng: torch.Generator) -> Tensor:
    """(count,) draws from Beta(alpha, alpha): the middle one of 2 alpha - 1 uniform numbers."""
    return torch.rand(count, 2 * alpha - 1, generator=rng).median(1).values


@hookimpl
def bench_register(register: Register) -> None:
    """Tell the harness which components this module brings."""
    register(LISA)
