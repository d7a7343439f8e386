"""The common parts of DisC and GALA's form of it: a bias branch tells which graphs matter to the causal branch."""

from torch import Tensor, nn

from harness import Baseline, Batch, hparam
from harness.nn import generalized_cross_entropy


class Debiased(Baseline):
    """A causal and a bias branch; l_c and l_b are the cross-entropies of their classifiers, GCE_q the generalised form.

        W_i = sg l_b,i / (l_b,i + l_c,i + 1e-8)      (Nam et al., *Learning from Failure*, NeurIPS 2020)
        L_D = mean_i W_i l_c,i + bias * mean_i GCE_q(bias classifier, y)_i

    sg stops gradients; GCE is that of Zhang and Sabuncu, NeurIPS 2018.
    """

    tasks = frozenset({"binary", "multiclass"})
    q: float = hparam(0.7, low=0.01, high=1.0, search=[0.5, 0.7, 0.9], help="of the generalised cross-entropy")
    bias: float = hparam(1.0, low=0.0, search=[0.5, 1.0, 2.0], weight_of="bias", help="weight of the bias branch")
    gce: str = hparam(
        "paper", choices=["paper", "scaled"], help="(1 - p^q) / q, or q sg(p^q) CE, whose gradient is q times as large"
    )

    def importance(self, causal: Tensor, biased: Tensor) -> Tensor:
        """(B,) W from the two cross-entropies (B,), without gradient."""
        return relative_difficulty(causal, biased)

    def terms(self, causal: Tensor, biased: Tensor, batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
        """The terms of L_D from the two branches' (B, C) logits, and W (B,)."""
        risk = self.risk(causal, batch)
        importance = self.importance(risk, self.risk(biased, batch))
        bias = amplified(biased, batch.y, self.q, self.gce).mean()
        return {"causal": (importance * risk).mean(), "bias": bias}, importance


def relative_difficulty(causal: Tensor, biased: Tensor) -> Tensor:
    """(B,) W = l_b / (l_b + l_c + 1e-8), without gradient: near one where only the bias branch fails."""
    causal, biased = causal.detach(), biased.detach()
    return biased / (biased + causal + 1e-8)


def amplified(logits: Tensor, y: Tensor, q: float, form: str) -> Tensor:
    """(B,) generalised cross-entropy: ``paper`` (1 - p^q) / q, or ``scaled`` q sg(p^q) CE."""
    if form == "paper":
        return generalized_cross_entropy(logits, y, q)
    entropy = nn.functional.cross_entropy(logits, y, reduction="none")
    return q * (-q * entropy.detach()).exp() * entropy
