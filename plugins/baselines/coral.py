"""Deep CORAL: align the first and second moments of the environments' embeddings (Sun and Saenko, 2016)."""

from torch import Tensor

from harness import Batch, Register, hookimpl, hparam
from harness.nn import environment_moments
from plugins.baselines._annealed import EnvironmentPenalty


class Coral(EnvironmentPenalty):
    """The graph embeddings of any two environments should have equal means mu and covariances S.

        L = mean_i l_i + strength * mean over pairs e < f of [ |mu_e - mu_f|^2 / d + |S_e - S_f|_F^2 / d^2 ]

    Covariances are over n - 1, of environments with two graphs or more. The mean over pairs of squared distances is
    computed as twice the variance (over P - 1). The term grows with the fourth power of the embeddings: of sums over
    nodes it needs weights near 0.001, as in DrugOOD. Sun and Saenko, *Deep CORAL*, ECCV Workshops 2016; for several
    environments as in Gulrajani and Lopez-Paz, *In Search of Lost Domain Generalization*, ICLR 2021.
    """

    name = "coral"
    compares_environments = True
    equals_erm = {"strength": 0.0}
    strength: float = hparam(
        0.1, low=0.0, search=[0.001, 0.01, 0.1, 1.0], weight_of="alignment", help="weight of the moments' distance"
    )
    moments: str = hparam("both", choices=["both", "covariance"], help="align means and covariances, or the latter")

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        h, env = self.embed(batch), self.environments(batch)
        means, covariances = environment_moments(h, env)
        distance = h.sum() * 0.0
        if len(means) > 1:
            distance = 2 * covariances.var(0).mean()
            if self.moments == "both":
                distance = distance + 2 * means.var(0).mean()
        risk = self.mean_risk(self.risk(self.head(h), batch), env, self.label_share(batch.y))
        return {"erm": risk, "alignment": distance}


@hookimpl
def bench_register(register: Register) -> None:
    register(Coral)
