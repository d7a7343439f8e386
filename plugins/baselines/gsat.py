"""GSAT: noisy attention on edges, with a price on attention that prediction does not need (Miao et al., ICML 2022)."""

import math

import torch
from torch import Tensor

from harness import Baseline, Batch, Register, hookimpl, hparam
from harness.nn import EdgeScorer, NodeScorer, average_directions


class GSAT(Baseline):
    """One network reads each graph twice: to score its edges, and to predict with messages weighted by the scores.

    A scorer turns the node embeddings of the first pass into a logit l per edge (or node). Attention is
    a = sigmoid(l + log u - log(1 - u)) with u uniform in training, and a = sigmoid(l) in evaluation. Messages of the
    second pass are weighted by a, averaged over the two directions of an edge, or by the product of both ends'.

        L = mean_i l(y_i, f(G_i)) + information * mean KL(Bernoulli(a) || Bernoulli(r))

    r falls from 0.9 by 0.1 every ``decay_interval`` epochs until it is ``final_r``; checkpoints are chosen from then
    on. Miao et al., *Interpretable and Generalizable Graph Learning via Stochastic Attention Mechanism*, ICML 2022.
    """

    name = "gsat"
    probes = {
        "final_r": {"decay_interval": 1, "final_r": 0.8},
        "decay_interval": {"decay_interval": 1},
    }
    information: float = hparam(
        1.0, low=0.0, search=[0.01, 0.1, 1.0], weight_of="information", help="weight of the divergence from r"
    )
    final_r: float = hparam(
        0.7, low=0.01, high=1.0, search=[0.5, 0.7], help="r, the attention that costs nothing, in the end"
    )
    decay_interval: int = hparam(10, low=1, help="epochs between two falls of r")
    attention: str = hparam("edge", choices=["edge", "node"], help="what is scored")
    divergence: str = hparam(
        "sampled", choices=["sampled", "probability"], help="KL of the noisy attention, or of sigmoid(l)"
    )
    scorer_dropout: float = hparam(0.5, low=0.0, high=1.0, help="dropout in the scorer")
    scorer_norm: bool = hparam(True, help="the scorer standardises its hidden values within each graph")

    def build(self) -> None:
        super().build()
        scorer = EdgeScorer if self.attention == "edge" else NodeScorer
        self.scorer = scorer(self.backbone.out_dim, dropout=self.scorer_dropout, norm=self.scorer_norm, rng=self.rng)
        falls = max(math.ceil((0.9 - self.final_r) / 0.1 - 1e-9), 0)
        self.selectable_from = max(min(falls * self.decay_interval, self.info.epochs - 1), 0)

    @property
    def r(self) -> float:
        """The prior keep probability in this epoch."""
        return max(self.final_r, 0.9 - 0.1 * (self.epoch // self.decay_interval))

    def attend(self, logits: Tensor) -> Tensor:
        """Attention in (0, 1) from logits of any shape, noisy in training."""
        if not self.training:
            return logits.sigmoid()
        u = torch.rand(logits.shape, generator=self.rng).mul(1 - 2e-6).add(1e-6)
        return (logits + torch.logit(u).to(logits)).sigmoid()

    def edge_weight(self, attention: Tensor, batch: Batch) -> Tensor:
        """(E,) factors of the messages, from (E,) edge or (N,) node attention."""
        if self.attention == "edge":
            return average_directions(attention, batch)
        source, target = batch.edge_index
        return attention.index_select(0, source) * attention.index_select(0, target)

    def read(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Graph embeddings (B, d), and logits and attention of the edges (E,) or nodes (N,)."""
        logits = self.scorer(self.backbone(batch), batch)
        attention = self.attend(logits)
        nodes = self.backbone(batch, edge_weight=self.edge_weight(attention, batch))
        return self.pool(nodes, batch), logits, attention

    def embed(self, batch: Batch) -> Tensor:
        return self.read(batch)[0]

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        embedding, logits, attention = self.read(batch)
        cost = divergence(attention if self.divergence == "sampled" else logits.sigmoid(), self.r)
        return {
            "erm": self.risk(self.head(embedding), batch).mean(),
            "information": cost.sum() / max(cost.numel(), 1),
        }


def divergence(a: Tensor, r: float, eps: float = 1e-6) -> Tensor:
    """KL(Bernoulli(a) || Bernoulli(r)) of each value, in nats; ``eps`` in the logarithms allows a of 0 and 1."""
    return a * torch.log(a / r + eps) + (1 - a) * torch.log((1 - a) / (1 - r + eps) + eps)


@hookimpl
def bench_register(register: Register) -> None:
    register(GSAT)
