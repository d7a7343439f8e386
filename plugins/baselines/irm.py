"""IRMv1: one classifier scale, optimal in every environment (Arjovsky et al., arXiv:1907.02893, 2019)."""

import torch
from torch import Tensor

from harness import Batch, Register, UserError, hookimpl, hparam
from harness.nn import environment_mean, environment_size, position_in_environment, scale_gradient
from plugins.baselines._annealed import AnnealedPenalty


class IRM(AnnealedPenalty):
    """Penalise the gradient of each environment's risk with respect to a factor on the logits, at factor one.

    With g_i that derivative for graph i (in closed form) and P environments in the batch,

        L = mean_i l_i + penalty * 1/P sum_e D_e

    where D_e is (mean_e g)^2 (``squared``, the authors'), the product of the means over e's graphs at even and at odd
    positions (``split``, unbiased: Gulrajani and Lopez-Paz, ICLR 2021), or the product of the means of exactly two
    environments (``cross2``, the public code of CIGA and GALA), which is zero where a batch holds one.
    """

    name = "irm"
    annealed = "invariance"
    compares_environments = {"form": ["cross2"]}
    equals_erm = {"penalty": 0.0}
    penalty: float = hparam(
        10.0, low=0.0, search=[0.1, 1.0, 10.0, 100.0], weight_of="invariance", help="weight of the gradient penalty"
    )
    form: str = hparam("squared", choices=["squared", "split", "cross2"], help="estimator of the squared gradient")

    def build(self) -> None:
        if self.form == "cross2" and self.info.num_environments != 2:
            raise UserError(f"irm, form 'cross2': needs two environments, there are {self.info.num_environments}")
        super().build()

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        return self.terms(self(batch), batch)

    def terms(self, logits: Tensor, batch: Batch) -> dict[str, Tensor]:
        """The risk and the gradient penalty, from (B, C) logits."""
        risk, gradient = self.risk(logits, batch), scale_gradient(logits, batch.y, self.info.task)
        env, share = self.environments(batch), self.label_share(batch.y)
        if share is not None:
            gradient = gradient * share
        penalties = environment_penalties(gradient, env, self.form, share)
        penalty = penalties.mean() if len(penalties) else gradient.sum() * 0.0
        return {"erm": self.mean_risk(risk, env, share), "invariance": penalty}


def environment_penalties(gradient: Tensor, env: Tensor, form: str, share: Tensor | None = None) -> Tensor:
    """(P',) penalties D_e of the environments large enough for the form; see :class:`IRM`.

    Args:
        gradient: (B,) derivative of each graph's loss by the factor on its logits.
        env: (B,) environment ids; negative ids count nowhere.
        form: ``squared``, ``split`` (environments of two graphs or more) or ``cross2`` (a single value).
        share: (B,) what each graph counts in its derivative; None: each alike.
    """
    if form == "split":
        pairs = 2 * env + position_in_environment(env) % 2
        halves = torch.where((env >= 0) & (environment_size(env) > 1), pairs, torch.full_like(env, -1))
        return environment_mean(gradient, halves, share=share).reshape(-1, 2).prod(1)
    means = environment_mean(gradient, env, share=share)
    if form == "squared":
        return means.square()
    return means.prod().reshape(1) if len(means) == 2 else means[:0]


@hookimpl
def bench_register(register: Register) -> None:
    register(IRM)
