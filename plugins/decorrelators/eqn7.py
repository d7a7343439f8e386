"""EQuAD's decorrelation loss: cross-entropy plus a weighted soft-target term (Yao et al., ICML 2024, Eqns. 7, 8)."""

from torch import Tensor

from harness import Batch, Decorrelator, Register, hookimpl, hparam
from plugins.decorrelators._targets import mean_vote, of_label, omega, omega_of_log

SEVERAL = {"keep": "> 1", "weighting": ["weighted", "average"]}
"""With one quantifier these say nothing."""


class Eqn7(Decorrelator):
    """Learn the labels, and towards the spurious votes on those graphs whose label they miss.

    With logits z_i, the class probabilities s^k_i of the K kept quantifiers and their weights w_k,

        L     = mean_i CE(y_i, z_i) + strength * L_inv                                                   (Eqn. 8)
        L_inv = 1/K sum_k w_k mean_i [ omega(s^k_{i,y_i}) * (- sum_j s^k_ij log softmax(z_i)_j) ]        (Eqn. 7)
        omega(s) = (1 - s^gamma) / gamma

    Both terms read the same logits; probabilities and weights are constants. Citation: Yao et al., *Empowering Graph
    Invariance Learning with Deep Spurious Infomax*, ICML 2024.
    """

    name = "eqn7"
    equals_erm = {"strength": 0.0}
    strength: float = hparam(
        0.1, low=0.0, search=[1e-3, 1e-2, 1e-1], weight_of="invariance", help="lambda: weight of the soft-target term"
    )
    gamma: float = hparam(
        0.5, low=0.0, search=[0.7, 0.5, 0.3, 0.1, 0.05], help="exponent of omega; 0 is its limit, -log s"
    )
    per_class: bool = hparam(False, help="weigh each class by omega of its own vote, as Eqn. 7 is written")
    weight_source: str = hparam(
        "targets", choices=["targets", "model"], help="omega of the spurious votes, or of the model's own softmax"
    )
    weight_detach: bool = hparam(
        True, active={"weight_source": ["model"]}, help="no gradient through the weights (false in the public code)"
    )
    sample_weight: str = hparam(
        "per-model",
        choices=["per-model", "mean"],
        active={"weight_source": ["targets"], **SEVERAL},
        help="omega of each quantifier's vote, or of their weighted mean",
    )
    divide_by_k: bool = hparam(True, active=SEVERAL, help="the factor 1/K of Eqn. 7 (absent from the public code)")
    ground_truth_loss: str = hparam(
        "mean", choices=["mean", "sum"], help="mean over graphs, or the paper's sum (estimated as N times the mean)"
    )
    heads: str = hparam(
        "shared", choices=["shared", "separate"], help="one head for both terms, or a second one for the soft targets"
    )
    separate_head_trainable: bool = hparam(
        True, active={"heads": ["separate"]}, help="train the second head (false in the public code)"
    )
    detach_multi: bool = hparam(
        False, active=SEVERAL, help="with several quantifiers, cut the term's gradient: the public code, equal to ERM"
    )

    def build(self) -> None:
        super().build()
        if self.heads == "separate":
            self.spurious_head = self.make_head().requires_grad_(self.separate_head_trainable)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        embedding = self.embed(batch)
        logits = self.head(embedding)
        soft = logits if self.heads == "shared" else self.spurious_head(embedding)
        erm = self.risk(logits, batch).mean()
        return {
            "erm": erm if self.ground_truth_loss == "mean" else erm * self.info.num_train,
            "invariance": self.invariance(soft, batch),
        }

    def invariance(self, logits: Tensor, batch: Batch) -> Tensor:
        """L_inv of (B, C) logits, a scalar."""
        votes, model_weights = batch.spurious, self.model_weights.to(batch.spurious)
        log_p = logits.log_softmax(1).unsqueeze(1)
        weight = self.graph_weights(votes, log_p, model_weights, batch.y)
        each = -(weight * votes * log_p).sum(2).mean(0)
        term = (model_weights * each).sum() / (len(each) if self.divide_by_k else 1)
        return term.detach() if self.detach_multi and len(each) > 1 else term

    def graph_weights(self, votes: Tensor, log_p: Tensor, model_weights: Tensor, y: Tensor) -> Tensor:
        """Omega of each graph: (B, K or 1, C) per class, else (B, K or 1, 1)."""
        if self.weight_source == "model":
            weight = omega_of_log(log_p.detach() if self.weight_detach else log_p, self.gamma)
        else:
            chosen = votes if self.sample_weight == "per-model" else mean_vote(votes, model_weights)
            weight = omega(chosen, self.gamma)
        return weight if self.per_class else of_label(weight, y).unsqueeze(2)


@hookimpl
def bench_register(register: Register) -> None:
    register(Eqn7)
