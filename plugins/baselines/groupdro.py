"""GroupDRO: minimise the risk of the worst group, online (Sagawa et al., ICLR 2020)."""

import math

import torch
from torch import Tensor

from harness import Baseline, Batch, Register, UserError, hookimpl, hparam
from harness.nn import environment_mean, labelled_environments


class GroupDRO(Baseline):
    """Weights q on the groups follow their risks R_g by exponentiated gradient, and the loss is the weighted risk.

        q_g <- q_g exp(step_size * R_g) / sum,    L = sum_g q_g R_g,    with the new q, over the groups in the batch

    Groups are the environments, or their pairs with the class. log q is a buffer, so it is saved with the weights.
    Sagawa et al., *Distributionally Robust Neural Networks for Group Shifts*, ICLR 2020, algorithm 1.
    """

    name = "groupdro"
    needs = frozenset({"environments"})
    compares_environments = {"groups": ["environment"]}
    compares_over_batches = {"stateless": [False], "renormalise": [False]}
    probes = {"renormalise": {"groups": "environment-class", "step_size": 0.1, "renormalise": True}}
    step_size: float = hparam(0.01, low=0.0, search=[0.001, 0.01, 0.1], help="eta of the weights' update")
    groups: str = hparam(
        "environment", choices=["environment", "environment-class"], help="what a group is; the latter not multi-task"
    )
    stateless: bool = hparam(False, active={"step_size": "> 0"}, help="forget q after each batch")
    renormalise: bool = hparam(False, help="divide by the weight of the groups present")
    log_q: Tensor

    def build(self) -> None:
        self.by_class = self.groups == "environment-class"
        if self.by_class and self.info.task.kind == "multitask":
            raise UserError("groupdro, groups 'environment-class': a multi-task graph has no single class")
        super().build()
        count = max(self.info.num_environments, 1) * (self.info.task.num_classes if self.by_class else 1)
        self.register_buffer("log_q", torch.full((count,), -math.log(count)))

    def group_ids(self, batch: Batch) -> Tensor:
        """(B,) group of each graph, -1 for those that are in none."""
        env = labelled_environments(batch.env, batch.y, self.info.task)
        if not self.by_class:
            return env
        return torch.where(env >= 0, env * self.info.task.num_classes + batch.y.reshape(-1), env)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        risk, ids = self.risk(self(batch), batch), self.group_ids(batch)
        present = torch.unique(ids[ids >= 0])
        if len(present) == 0:
            return {"worst": risk.sum() * 0.0}
        risks = environment_mean(risk, ids, share=self.label_share(batch.y))
        self.pending = self.updated(present, risks.detach())
        q = self.pending.exp()[present]
        return {"worst": (q / q.sum() if self.renormalise else q) @ risks}

    def updated(self, present: Tensor, risks: Tensor) -> Tensor:
        """(G,) log q after a step in which these groups had these risks."""
        before = torch.full_like(self.log_q, -math.log(len(self.log_q))) if self.stateless else self.log_q
        log_q = before.index_add(0, present, self.step_size * risks)
        return log_q - log_q.logsumexp(0)

    def training_step(self, batch: Batch, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
        self.pending = self.log_q
        terms = super().training_step(batch, optimizers)
        self.log_q = self.pending
        return terms


@hookimpl
def bench_register(register: Register) -> None:
    register(GroupDRO)
