"""IRMv1: one classifier scale, optimal in every environment (Arjovsky et al., arXiv:1907.02893, 2019)."""

import torch
from torch import Tensor

from harness import Baseline, Batch, UserError, environment_mean, hookimpl, hparam, scale_gradient


class IRM(Baseline):
    """Penalise the gradient of each environment's risk with respect to a factor on the logits, at factor one.

    With g_i that derivative for graph i (in closed form: no second backward pass) and P environments in the batch,

        L = mean_i l_i + penalty * 1/P sum_e D_e

    * ``squared``: D_e = (mean_e g)^2, the authors' form; exceeds the squared expectation by Var(g)/n_e.
    * ``split``: the product of the means over e's graphs at even and at odd positions in the batch; without that
      excess, can be negative (Gulrajani and Lopez-Paz, *In Search of Lost Domain Generalization*, ICLR 2021).
    * ``cross2``: the product of the means of exactly two environments, as the public code of CIGA and GALA has it.

    A batch with one environment has no penalty. Unlike public code, a NaN never stands for it.
    """

    name = "irm"
    needs = frozenset({"environments"})
    equals_erm = {"penalty": 0.0}
    probes = {"pre_weight": {"anneal_steps": 4, "pre_weight": 3.0}}
    penalty: float = hparam(
        10.0, low=0.0, search=[0.1, 1.0, 10.0, 100.0], weight_of="invariance", help="weight of the gradient penalty"
    )
    form: str = hparam("squared", choices=["squared", "split", "cross2"], help="estimator of the squared gradient")
    erm_term: str = hparam(
        "samples", choices=["samples", "environments"], help="risk: mean over graphs, or over environments present"
    )
    anneal_steps: int = hparam(
        0, low=0, help="steps with ``pre_weight`` instead of ``penalty``; the optimizer starts afresh after them"
    )
    pre_weight: float = hparam(1.0, low=0.0, help="weight of the penalty during ``anneal_steps``")

    def build(self) -> None:
        if self.form == "cross2" and self.info.num_environments != 2:
            raise UserError(f"irm, form 'cross2': needs two environments, there are {self.info.num_environments}")
        super().build()

    def weight(self, term: str) -> float:
        early = term == "invariance" and self.step < self.anneal_steps
        return self.pre_weight if early else super().weight(term)

    def training_step(self, batch: Batch, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
        if 0 < self.anneal_steps == self.step:
            for optimizer in optimizers:
                optimizer.state.clear()
        return super().training_step(batch, optimizers)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        logits = self(batch)
        risk, gradient = self.risk(logits, batch), scale_gradient(logits, batch.y, self.info.task)
        env = self.environments(batch)
        by_environment = environment_mean(risk, env)
        average = self.erm_term == "environments" and len(by_environment) > 0
        erm = by_environment.mean() if average else risk.mean()
        terms = environment_penalties(gradient, env, self.form)
        enough = len(by_environment) > 1 and len(terms) > 0
        return {"erm": erm, "invariance": terms.mean() if enough else gradient.sum() * 0.0}

    def environments(self, batch: Batch) -> Tensor:
        """(B,) ids, -1 for graphs without any label: they count in no environment."""
        if self.info.task.kind != "multitask":
            return batch.env
        return torch.where(torch.isnan(batch.y).all(1), torch.full_like(batch.env, -1), batch.env)


def environment_penalties(gradient: Tensor, env: Tensor, form: str) -> Tensor:
    """(P',) penalties D_e of the environments large enough for the form; see :class:`IRM`.

    Args:
        gradient: (B,) derivative of each graph's loss by the factor on its logits.
        env: (B,) environment ids; negative ids count nowhere.
        form: ``squared``, ``split`` (environments of two graphs or more) or ``cross2`` (a single value).
    """
    if form == "split":
        pairs = 2 * env + position_in_environment(env) % 2
        halves = torch.where((env >= 0) & (environment_size(env) > 1), pairs, torch.full_like(env, -1))
        return environment_mean(gradient, halves).reshape(-1, 2).prod(1)
    means = environment_mean(gradient, env)
    if form == "squared":
        return means.square()
    return means.prod().reshape(1) if len(means) == 2 else means[:0]


def position_in_environment(env: Tensor) -> Tensor:
    """(B,) number of earlier graphs of the same environment."""
    same = env.unsqueeze(0) == env.unsqueeze(1)
    return same.tril(-1).sum(1)


def environment_size(env: Tensor) -> Tensor:
    """(B,) number of graphs of each graph's environment."""
    return (env.unsqueeze(0) == env.unsqueeze(1)).sum(1)


@hookimpl
def bench_register(register):
    register(IRM)
