"""MoleOOD: equal risks over inferred environments (Yang et al., NeurIPS 2022)."""

import math
from typing import Any

from torch import Tensor, nn

from harness import Baseline, Batch, Register, UserError, hookimpl, hparam
from harness.nn import environment_mean, has_label, labelled_environments, per_sample_loss, pool


class MoleOOD(Baseline):
    """Balance the risk over latent environments, and keep each graph's loss near its expected one.

    The environment component ``moleood`` gives graph i an environment and c_i, its loss averaged over the prior of
    the environments under a frozen model. With P environments in the batch,

        L = strength * 1/P sum_e mean_{i in e} l_i + deviation * mean_i | l_i - c_i |.

    Where the dataset gives molecules' fragments (its ``fragments: brics``), h = sum_j a_j s_j with a the softmax over
    the molecule's fragments of (W_q h_G) . (W_k s_j) / sqrt(d) and s_j a second network's embedding of fragment j,
    both means over nodes whatever the suite's readout; otherwise h = h_G, by the suite's. Yang et al., *Learning
    Substructure Invariance for Out-of-Distribution Molecular Representations*, NeurIPS 2022.
    """

    name = "moleood"
    needs = frozenset({"environments", "expected_risk"})
    default_environment = "moleood"
    reads_parts = True
    probes = {"substructures": {"substructures": "none"}}
    strength: float = hparam(
        0.1, low=0.0, search=[0.01, 0.1, 1.0], weight_of="environments", help="weight of the environments' mean risk"
    )
    deviation: float = hparam(
        1.0, low=0.0, weight_of="deviation", help="weight of the distance between losses and expected losses"
    )
    substructures: str = hparam(
        "auto",
        choices=["auto", "brics", "none"],
        help="attend over fragments where the dataset has them; insist on them; or never",
    )

    def build(self) -> None:
        if self.substructures == "brics" and not self.info.has_parts:
            raise UserError("moleood, 'substructures: brics': this dataset gives no fragments (`fragments: brics`)")
        super().build()
        if self.attends:
            d = self.backbone.out_dim
            self.part_backbone = self.make_backbone()
            # A bias of the keys would be the same for all fragments of a molecule, so the softmax would not see it.
            self.query, self.key = nn.Linear(d, d), nn.Linear(d, d, bias=False)

    @property
    def attends(self) -> bool:
        """Return True if graphs are represented by their fragments."""
        return self.info.has_parts and self.substructures != "none"

    def embed(self, batch: Batch) -> Tensor:
        if not self.attends:
            return super().embed(batch)
        return self.attend(*self.means(batch), batch)

    def means(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(B, d) molecules and (F, d) fragments, as means over nodes.

        Of sums, a score grows with the atoms of both: the softmax then takes one fragment and has no gradient.
        """
        parts: Any = batch.parts
        return pool(self.backbone(batch), batch, "mean"), pool(self.part_backbone(parts), parts, "mean")

    def attend(self, h: Tensor, parts: Tensor, batch: Batch) -> Tensor:
        """(B, d) weighted sums of the fragments' embeddings (F, d); see :meth:`attention`."""
        weight = self.attention(h, parts, batch)
        return parts.new_zeros(h.shape).index_add(0, batch.parts_of, weight.unsqueeze(1) * parts)

    def attention(self, h: Tensor, parts: Tensor, batch: Batch) -> Tensor:
        """(F,) weights of fragments, which sum to one in each molecule, from (B, d) molecules and (F, d) fragments."""
        score = (self.query(h)[batch.parts_of] * self.key(parts)).sum(1) / math.sqrt(h.size(1))
        highest = score.new_full((len(h),), -math.inf).scatter_reduce(0, batch.parts_of, score.detach(), "amax")
        raw = (score - highest[batch.parts_of]).exp()
        return raw / raw.new_zeros(len(h)).index_add(0, batch.parts_of, raw)[batch.parts_of]

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        logits, task = self(batch), self.info.task
        risk, known = self.risk(logits, batch), has_label(batch.y, task)
        env = labelled_environments(batch.env, batch.y, task)
        share = self.label_share(batch.y)
        by_environment = environment_mean(risk, env, share=share)
        own = risk if share is None else per_sample_loss(logits, batch.y, task)
        apart = (own - self.annotations["expected_risk"][batch.index]).abs() * known
        return {
            "environments": by_environment.mean() if len(by_environment) else risk.mean(),
            "deviation": apart.sum() / known.sum().clamp(min=1),
        }


@hookimpl
def bench_register(register: Register) -> None:
    register(MoleOOD)
