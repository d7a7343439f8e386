"""V-REx: penalise the variance of the environments' risks (Krueger et al., ICML 2021)."""

from torch import Tensor

from harness import Batch, Register, hookimpl, hparam
from harness.nn import environment_mean
from plugins.baselines._annealed import AnnealedPenalty


class VREx(AnnealedPenalty):
    """Risk extrapolation: the risks R_e of the P environments in a batch should be equal.

        L = mean_i l_i + penalty * Var_e(R_e)

    The variance is over P (``spread: sample`` for P - 1), so one environment alone has none. Citation: Krueger et al.,
    *Out-of-Distribution Generalization via Risk Extrapolation (REx)*, ICML 2021.
    """

    name = "vrex"
    annealed = "variance"
    compares_environments = True
    equals_erm = {"penalty": 0.0}
    penalty: float = hparam(
        10.0, low=0.0, search=[1.0, 10.0, 100.0, 1000.0], weight_of="variance", help="weight of the risks' variance"
    )
    spread: str = hparam("population", choices=["population", "sample"], help="divide by P, or by P - 1")

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        risk, env, share = self.risk(self(batch), batch), self.environments(batch), self.label_share(batch.y)
        risks = environment_mean(risk, env, share=share)
        variance = risks.var(unbiased=self.spread == "sample") if len(risks) > 1 else risk.sum() * 0.0
        return {"erm": self.mean_risk(risk, env, share), "variance": variance}


@hookimpl
def bench_register(register: Register) -> None:
    register(VREx)
