"""Penalise differences of the environments' risks (Krueger et al., ICML 2021)."""

from typing import ClassVar

from harness import Baseline, Batch, Register, hookimpl, hparam
from harness.nn import environment_mean
from torch import Tensor


class NewComponent(Baseline):
    """Mean risk, plus a multiple of the variance of the environments' mean risks.

    A baseline trains one classifier. It gets backbone and head from the suite; all
    that is needed here is the loss. Say in this docstring what the method does, with
    its formula and the paper it comes from.
    """

    name = "new-component"
    needs = frozenset({"environments"})  # of `batch.env`; a suite's `envs` says whose
    compares_environments = True  # one environment alone is refused

    # With these values training is bit for bit ERM's. `bench check` tries it.
    equals_erm: ClassVar = {"penalty": 0.0}

    # `weight_of` names the loss term that this number multiplies, `search` holds what
    # `tune: default` tries.
    penalty: float = hparam(
        10.0,
        low=0.0,
        search=[1.0, 10.0, 100.0],
        weight_of="variance",
        help="weight of the variance of the environments' risks",
    )

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """The loss terms, raw: the harness weighs them, adds them up and logs each."""
        # self(batch) are logits, self.embed(batch) would be graph embeddings.
        risk = self.risk(self(batch), batch)  # (graphs,)
        risks = environment_mean(risk, batch.env)  # (environments in the batch,)
        return {"erm": risk.mean(), "variance": risks.var(unbiased=False)}


@hookimpl
def bench_register(register: Register) -> None:
    register(NewComponent)
