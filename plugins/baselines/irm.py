"""IRMv1: one classifier scale, optimal in every environment (Arjovsky et al., arXiv:1907.02893, 2019)."""

import torch
from torch import Tensor

from harness import (
    Batch,
    UserError,
    deviation,
    environment_mean,
    environment_size,
    hookimpl,
    hparam,
    position_in_environment,
    scale_gradient,
)
from plugins.baselines._annealed import EnvironmentPenalty


class IRM(EnvironmentPenalty):
    """Penalise the gradient of each environment's risk with respect to a factor on the logits, at factor one.

    With g_i that derivative for graph i (in closed form: no second backward pass) and P environments in the batch,

        L = mean_i l_i + penalty * 1/P sum_e D_e

    * ``squared``: D_e = (mean_e g)^2, the authors' form; exceeds the squared expectation by Var(g)/n_e.
    * ``split``: the product of the means over e's graphs at even and at odd positions in the batch; without that
      excess, can be negative (Gulrajani and Lopez-Paz, *In Search of Lost Domain Generalization*, ICLR 2021).
    * ``cross2``: the product of the means of exactly two environments, as the public code of CIGA and GALA has it.

    The sum over environments has a term for each, so one environment alone has a penalty too; only ``cross2`` compares
    two, and has none where a batch holds one.
    """

    name = "irm"
    annealed = "invariance"
    compares_environments = {"form": ["cross2"]}
    equals_erm = {"penalty": 0.0}
    probes = {"pre_weight": {"anneal_steps": 4, "pre_weight": 3.0}}
    deviations = (
        deviation(
            "penalty",
            paper="sum over environments of the squared gradient by a fixed scale of 1 (IRMv1)",
            public="CIGA's and GALA's: the product of two random halves' gradients; DomainBed's: product of the even "
            "and odd halves of each environment",
            ours="mean over the environments present of the squared gradient, in closed form",
            switch="form: cross2, or form: split",
        ),
        deviation(
            "weight",
            paper="a hyperparameter",
            public="DrugOOD's: read and never multiplied in, and the scale is a trained parameter",
            ours="multiplied in; the scale is the constant 1",
        ),
        deviation(
            "risk and schedule",
            paper="sum of the environments' risks; weight 1 first, then a large weight",
            public="DomainBed's: mean over environments, weight 1 for 500 steps, then the optimizer starts afresh; "
            "GOOD's: one mean over all, constant weight",
            ours="mean over graphs, constant weight",
            switch="erm_term: environments, anneal_steps: 500",
        ),
        deviation(
            "one environment in a batch",
            paper="a sum over environments, of one term then",
            public="DomainBed's, DrugOOD's and GOOD's: its penalty; CIGA's and GALA's: not a number, as the mean over "
            "the other half is empty",
            ours="its penalty; form `cross2`: none",
        ),
        deviation(
            "environments without a penalty of their own",
            paper="does not occur",
            public="GOOD's: one whose graphs have no label makes the penalty of the whole batch the number 0; "
            "DomainBed's and DrugOOD's: one of a single graph makes it not a number",
            ours="left out: those without a label; form `split`: those of one graph",
        ),
    )
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
def bench_register(register):
    register(IRM)
