"""DANN: embeddings from which a classifier cannot tell the environment (Ganin et al., JMLR 2016)."""

import math

import torch.nn.functional as F
from torch import Tensor, nn

from harness import Baseline, Batch, Register, hookimpl, hparam
from harness.nn import labelled_environments, reverse_gradient


class DANN(Baseline):
    """A linear head predicts the environment from the graph embedding h, through a reversal of the gradient.

        L = mean_i l_i + strength * mean_i CE(domain(reverse(h_i)), e_i)

    Backwards the reversal multiplies by -alpha, with alpha = 2 / (1 + exp(-10 p)) - 1 and p the share of training
    done. Ganin et al., *Domain-Adversarial Training of Neural Networks*, JMLR 2016.
    """

    name = "dann"
    needs = frozenset({"environments"})
    compares_environments = True
    compares_over_batches = True
    equals_erm = {"strength": 0.0}
    strength: float = hparam(
        0.1, low=0.0, search=[0.001, 0.01, 0.1, 1.0], weight_of="domain", help="weight of the domain loss"
    )
    alpha: float | None = hparam(
        None, low=0.0, active={"strength": "> 0"}, help="factor of the reversed gradient; none: the growing one"
    )

    def build(self) -> None:
        super().build()
        self.domain_head = nn.Linear(self.backbone.out_dim, max(self.info.num_environments, 1))

    def reversal(self) -> float:
        """alpha now."""
        if self.alpha is not None:
            return self.alpha
        return schedule(self.step / max(self.total_steps, 1))

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        h = self.embed(batch)
        env = labelled_environments(batch.env, batch.y, self.info.task)
        known = env >= 0
        logits = self.domain_head(reverse_gradient(h, self.reversal()))[known]
        domain = F.cross_entropy(logits, env[known]) if bool(known.any()) else logits.sum()
        return {"erm": self.risk(self.head(h), batch).mean(), "domain": domain}


def schedule(progress: float) -> float:
    """alpha after a share of the training: 0 at the start, towards 1."""
    return 2 / (1 + math.exp(-10 * progress)) - 1


@hookimpl
def bench_register(register: Register) -> None:
    register(DANN)
