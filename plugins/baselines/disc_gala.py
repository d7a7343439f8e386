"""DisC as GALA's code has it: hard subgraphs, one network for both, no swap (Chen et al., NeurIPS 2023)."""

import torch
from torch import Tensor, nn

from harness import Batch, Register, hookimpl, hparam
from harness.nn import EdgeScorer, Subgraph, subgraph, top_k_edges
from plugins.baselines._debiased import Debiased
from plugins.baselines._statistics import MIXED, second_pass, statistics_switch


class DisCGALA(Debiased):
    """The top share of the edges is the causal part, what is left the bias part; one network embeds both.

        L = mean_i W_i l_c,i + bias * mean_i GCE_q(bias head(z_b), y)_i,    W_i = sg l_b,i / (l_b,i + l_c,i + 1e-8)

    Messages are weighted by sigmoid(score) on the causal part and by sigmoid(-score) on the bias part; prediction is
    from z_c. It is another method than ``disc``, under the same name in tables made with GALA's code (Chen et al.,
    *Does Invariant Graph Learning via Environment Augmentation Learn Invariance?*, NeurIPS 2023); losses as ``disc``.
    """

    name = "disc-gala"
    foreign_statistics = MIXED
    ratio: float = hparam(
        0.25,
        low=0.01,
        high=1.0,
        search=[0.25, 0.4, 0.6, 0.8],
        help="share of each graph's edges that are causal",
    )
    statistics: str = statistics_switch()

    def build(self) -> None:
        super().build()
        self.masker = self.make_backbone()
        self.scorer = EdgeScorer(self.node_width)
        outputs = self.info.task.outputs
        self.bias_head = nn.Sequential(self.make_head(), nn.Linear(outputs, outputs))

    def branches(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """z_c and z_b, (B, d) each; a graph without left-over edges has a z_b of zeros."""
        scores, kept = self.split(batch)
        z_c, left = self.embed_part(subgraph(batch, kept), scores), subgraph(batch, ~kept, without_edges="empty")
        if left.edges.numel() == 0:
            return z_c, torch.zeros_like(z_c)
        with second_pass(self, self.backbone):
            return z_c, self.embed_part(left, -scores)

    def split(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(E,) scores of the edges, and which of them are causal."""
        scores = self.scorer(self.masker(batch), batch)
        return scores, top_k_edges(scores, batch, self.ratio)

    def embed_part(self, part: Subgraph, scores: Tensor) -> Tensor:
        """(B, d) embeddings of a part, its messages weighted by the sigmoid of its edges' scores."""
        return self.pool(self.backbone(part.batch, edge_weight=scores[part.edges].sigmoid()), part.batch)

    def embed(self, batch: Batch) -> Tensor:
        scores, kept = self.split(batch)
        return self.embed_part(subgraph(batch, kept), scores)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        z_c, z_b = self.branches(batch)
        return self.terms(self.head(z_c), self.bias_head(z_b), batch)[0]


@hookimpl
def bench_register(register: Register) -> None:
    register(DisCGALA)
