"""IB-IRM: IRM with an information bottleneck on the embeddings (Ahuja et al., NeurIPS 2021)."""

from torch import Tensor

from harness import Batch, Register, hookimpl, hparam
from harness.nn import environment_variance
from plugins.baselines.irm import IRM


class IBIRM(IRM):
    """IRM plus the variance of the graph embeddings h, which bounds what they can carry.

        L = mean_i l_i + penalty * 1/P sum_e D_e + bottleneck * 1/P sum_e mean_d Var_{i in e}(h_id)

    Variances are over n - 1, of environments with two graphs or more. With a sum readout they grow with the graphs'
    sizes, so small weights are the ones to try there. Citation: Ahuja et al., *Invariance Principle Meets Information
    Bottleneck for Out-of-Distribution Generalization*, NeurIPS 2021.
    """

    name = "ib-irm"
    equals_erm = {"penalty": 0.0, "bottleneck": 0.0}
    probes = {
        "bottleneck_start": {"bottleneck_start": 3, "bottleneck": 1.0},
    }
    bottleneck: float = hparam(
        0.1, low=0.0, search=[0.01, 0.1, 1.0], weight_of="bottleneck", help="weight of the embeddings' variance"
    )
    within: str = hparam(
        "environment",
        choices=["environment", "batch"],
        active={"bottleneck": "> 0"},
        help="variance within each environment, or in the whole batch",
    )
    bottleneck_start: int = hparam(
        0, low=0, help="first step with the bottleneck; the optimizer starts afresh there, once for all thresholds"
    )

    def weight(self, term: str) -> float:
        return 0.0 if term == "bottleneck" and self.step < self.bottleneck_start else super().weight(term)

    def restarts(self) -> set[int]:
        return (super().restarts() | {self.bottleneck_start}) - {0}

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        h = self.embed(batch)
        env = self.environments(batch)
        variances = environment_variance(h, env if self.within == "environment" else env.clamp(max=0))
        bottleneck = variances.mean() if len(variances) else h.sum() * 0.0
        return {**self.terms(self.head(h), batch), "bottleneck": bottleneck}


@hookimpl
def bench_register(register: Register) -> None:
    register(IBIRM)
