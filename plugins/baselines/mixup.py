"""MixUp: train on convex combinations of pairs of graph embeddings (Zhang et al., 2018; Wang et al., 2021)."""

import numpy as np
import torch
from torch import Tensor

from harness import Baseline, Batch, Register, hookimpl, hparam


class MixUp(Baseline):
    """Each batch's embeddings h are mixed with a permutation of themselves, and so are their losses.

        h' = lam * h + (1 - lam) * h_pi,    L = mean_i [ lam * l(head(h'_i), y_i) + (1 - lam) * l(head(h'_i), y_pi(i)) ]

    with one lam from Beta(alpha, alpha) and one permutation pi per batch. For cross-entropy this equals the loss
    against the mixed labels. Citations: Zhang, Cisse, Dauphin and Lopez-Paz, *mixup: Beyond Empirical Risk
    Minimization*, ICLR 2018; on graph embeddings: Wang et al., *Mixup for Node and Graph Classification*, WWW 2021.
    """

    name = "mixup"
    equals_erm = {"probability": 0.0}
    alpha: float = hparam(
        1.0,
        low=1e-3,
        search=[0.1, 0.4, 1.0, 2.0],
        active={"probability": "> 0"},
        help="of the Beta distribution of lam",
    )
    probability: float = hparam(1.0, low=0.0, high=1.0, search=[0.5, 1.0], help="that a batch is mixed")
    smoothing: float = hparam(0.0, low=0.0, help="s of the targets (one-hot + s / C) / (1 + s); not for multi-task")

    def build(self) -> None:
        super().build()
        seed = int(torch.randint(2**31, (1,), generator=self.rng))
        self.draws = np.random.default_rng(seed)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        h = self.embed(batch)
        if self.draws.random() >= self.probability:
            return {"erm": self.smoothed(self.head(h), batch.y).mean()}
        lam = self.draws.beta(self.alpha, self.alpha)
        partner = torch.from_numpy(self.draws.permutation(batch.num_graphs)).to(h.device)
        return {"erm": self.mixed(h, batch.y, lam, partner)}

    def mixed(self, h: Tensor, y: Tensor, lam: float, partner: Tensor) -> Tensor:
        """The mixed loss of (B, d) embeddings with their partners'."""
        other = y[partner]
        if self.info.task.kind == "multitask":
            y, other = torch.where(other.isnan(), other, y), torch.where(y.isnan(), y, other)
        logits = self.head(lam * h + (1 - lam) * h[partner])
        return lam * self.smoothed(logits, y).mean() + (1 - lam) * self.smoothed(logits, other).mean()

    def smoothed(self, logits: Tensor, y: Tensor) -> Tensor:
        """(B,) losses against smoothed targets."""
        loss = self.losses(logits, y)
        if self.smoothing == 0.0 or self.info.task.kind == "multitask":
            return loss
        uniform = -logits.log_softmax(1).mean(1)
        return (loss + self.smoothing * uniform) / (1 + self.smoothing)


@hookimpl
def bench_register(register: Register) -> None:
    register(MixUp)
