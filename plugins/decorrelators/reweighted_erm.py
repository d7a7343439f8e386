"""EQuAD's loss for strongly biased data: cross-entropy, reweighted (Yao et al., ICML 2024, Eqn. 19)."""

from torch import Tensor

from harness import Batch, Decorrelator, Register, hookimpl, hparam
from plugins.decorrelators._targets import mean_vote, of_label, omega


class ReweightedERM(Decorrelator):
    """Cross-entropy in which a graph counts the less, the more its spurious part votes for its label.

        L = mean_i omega(s_{i,y_i}) CE(y_i, z_i),    omega(s) = (1 - s^gamma) / gamma,    s = sum_k w_k s^k

    The paper writes one matrix s; with several kept quantifiers we average them under their weights
    (``weighting: single`` keeps only the one with the lowest validation score). Weights are not normalised, as in
    the paper. Citation: Yao et al., *Empowering Graph Invariance Learning with Deep Spurious Infomax*, ICML 2024,
    Eqn. 19 (where gamma is called q). The public code does not hold this loss.
    """

    name = "reweighted-erm"
    gamma: float = hparam(
        0.5, low=0.0, search=[0.9, 0.7, 0.5, 0.3, 0.1, 0.01], help="exponent of omega; 0 is its limit, -log s"
    )

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        vote = mean_vote(batch.spurious, self.model_weights.to(batch.spurious))
        weight = omega(of_label(vote, batch.y).squeeze(1), self.gamma)
        return {"reweighted": (weight * self.risk(self(batch), batch)).mean()}


@hookimpl
def bench_register(register: Register) -> None:
    register(ReweightedERM)
