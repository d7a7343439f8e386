"""MoleOOD: equal risks over inferred environments (Yang et al., NeurIPS 2022)."""

import torch
from torch import Tensor

from harness import Baseline, Batch, deviation, environment_mean, has_label, hookimpl, hparam


class MoleOOD(Baseline):
    """Balance the risk over latent environments, and keep each graph's loss near its expected one.

    The environment component ``moleood`` gives graph i an environment and c_i, its loss averaged over the prior of
    the environments under a frozen model. With P environments in the batch,

        L = strength * 1/P sum_e mean_{i in e} l_i + deviation * mean_i | l_i - c_i |.

    The second term can raise the loss of an easy graph, up to c_i. Citation: Yang, Zeng, Wu, Jia and Yan, *Learning
    Substructure Invariance for Out-of-Distribution Molecular Representations*, NeurIPS 2022.
    """

    name = "moleood"
    needs = frozenset({"environments", "expected_risk"})
    default_environment = "moleood"
    deviations = (
        deviation(
            "where the weight stands",
            paper="on the environments' risk",
            public="the authors': there; GALA's: on the deviation from the expected loss",
            ours="one weight for each term",
            switch="strength: 1, deviation: WEIGHT",
        ),
        deviation(
            "what is shared between the stages",
            paper="nothing: inference networks are frozen, the main model starts afresh",
            public="the authors': the same; GALA's: one network for inference and prediction, so that ids drift",
            ours="nothing",
        ),
        deviation(
            "epochs that count for selection",
            paper="those of the main model",
            public="GALA's: also those of the inference, while the classifier is untrained",
            ours="those of the main model",
        ),
    )
    strength: float = hparam(
        0.1, low=0.0, search=[0.01, 0.1, 1.0], weight_of="environments", help="weight of the environments' mean risk"
    )
    deviation: float = hparam(
        1.0, low=0.0, weight_of="deviation", help="weight of the distance between losses and expected losses"
    )

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        risk, known = self.risk(self(batch), batch), has_label(batch.y, self.info.task)
        by_environment = environment_mean(risk, torch.where(known, batch.env, -1))
        apart = (risk - self.annotations["expected_risk"][batch.index]).abs() * known
        return {
            "environments": by_environment.mean() if len(by_environment) else risk.mean(),
            "deviation": apart.sum() / known.sum().clamp(min=1),
        }


@hookimpl
def bench_register(register):
    register(MoleOOD)
