"""MoleOOD's environments: latent ones, inferred with a variational model (Yang et al., NeurIPS 2022)."""

import copy
import math
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness import Batch, Environment, PackedGraphs, Register, Task, hookimpl, hparam
from harness.nn import has_label, per_sample_loss


class MoleOOD(Environment):
    """The most probable of ``k`` latent environments of each graph, and the loss it should have on average over them.

    Two networks of the suite's architecture, trained together and then frozen: q(e | G, y), from the graph and its
    label, and p(y | G, e), from the graph and a learnt vector v_e that starts at zero. They minimise

        mean_i [ sum_e q_ie l(i, e) ] + KL,    KL = mean_i sum_e q_ie (log q_ie - log pi_e),

    with l(i, e) the loss of p(y_i | G_i, e); the epoch with the lowest value on the training graphs is kept. Graph i's
    environment is argmax_e q_ie, and its ``expected_risk`` is sum_e pi_e l(i, e). Graphs without a label have none.

    Citation: Yang, Zeng, Wu, Jia and Yan, *Learning Substructure Invariance for Out-of-Distribution Molecular
    Representations*, NeurIPS 2022.
    """

    name = "moleood"
    positional = counted_by = "k"
    trains_networks = True
    provides = frozenset({"expected_risk"})
    probes = {"prior": {"prior": "gaussian", "k": 4}}
    k: int = hparam(10, low=1, search=[2, 3, 5, 10, 20], help="number of latent environments")
    infer_epochs: int | None = hparam(
        None, low=1, search=[20, 50, 100], help="epochs of the inference; none: as many as the method's own training"
    )
    prior: str = hparam(
        "uniform", choices=["uniform", "gaussian"], help="uniform, or a standard normal cut into equal bins on [-3, 3]"
    )
    kl_reduction: str = hparam("mean", choices=["mean", "sum"], help="mean or sum of the KL divergence over a batch")

    def assign(
        self, train: PackedGraphs, oracle: Mapping[str, Tensor], upstream: Mapping[str, Any]
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        del oracle, upstream
        model = LatentModel(self, self.k).to(train.x.device)
        self.fit(model, train)
        model.eval()
        with torch.no_grad():
            results = [model(batch) for batch in train.batches(256)]
        log_q, risks = torch.cat([log_q for log_q, _ in results]), torch.cat([risk for _, risk in results])
        known = has_label(train.y, self.info.task)
        self.describe(log_q[known].exp())
        ids = torch.full((len(train),), -1, device=known.device)
        ids[known] = torch.unique(log_q[known].argmax(1), return_inverse=True)[1]
        return ids, {"expected_risk": (risks * self.log_prior().to(risks).exp()).sum(1)}

    def fit(self, model: "LatentModel", train: PackedGraphs) -> None:
        """Train; leave the weights of the epoch with the lowest mean objective."""
        optimizer = self.make_optimizer(model.parameters())
        best, state = math.inf, copy.deepcopy(model.state_dict())
        for _ in range(self.info.epochs if self.infer_epochs is None else self.infer_epochs):
            model.train()
            total = 0.0
            order = torch.randperm(len(train), generator=self.rng)
            for batch in train.batches(self.batch_size, order, at_least=2):
                if batch.num_graphs < 2:
                    continue
                log_q, risks = model(batch)
                objective = self.objective(log_q, risks, has_label(batch.y, self.info.task))
                optimizer.zero_grad()
                objective.backward()
                optimizer.step()
                total += float(objective.detach()) * batch.num_graphs
            if total < best:
                best, state = total, copy.deepcopy(model.state_dict())
        model.load_state_dict(state)

    def objective(self, log_q: Tensor, risks: Tensor, known: Tensor) -> Tensor:
        """Minus the evidence lower bound of a batch.

        Args:
            log_q: (B, k) log-probabilities of the environments.
            risks: (B, k) loss of each graph under each environment.
            known: (B,) which graphs have a label; the others count nowhere.
        """
        q, count = log_q.exp() * known.unsqueeze(1), known.sum().clamp(min=1)
        divergence = (q * (log_q - self.log_prior().to(log_q))).sum()
        return (q * risks).sum() / count + (divergence / count if self.kl_reduction == "mean" else divergence)

    def log_prior(self) -> Tensor:
        """(k,) log pi."""
        if self.prior == "uniform":
            return torch.full((self.k,), -math.log(self.k))
        edges = torch.special.ndtr(torch.linspace(-3, 3, self.k + 1, dtype=torch.float64))
        return (edges.diff() / edges.diff().sum()).log().float()

    def describe(self, q: Tensor) -> None:
        """Add a flag where the ids say nothing: one environment for all, or q as good as the prior."""
        if self.k > 1 and len(q.argmax(1).unique()) == 1:
            self.flags.append("all graphs are in one environment")
        if self.k > 1 and float((q - self.log_prior().to(q).exp()).abs().max()) < 0.01:
            self.flags.append("the posterior equals the prior, so that the environments are noise")


class LatentModel(nn.Module):
    """q(e | G, y) and p(y | G, e), each a graph network with a linear layer; the second reads a vector for each e.

    Args:
        maker: the component whose networks and readout to use.
        k: number of environments.
    """

    def __init__(self, maker: Environment, k: int) -> None:
        super().__init__()
        self.task, self.pool = maker.info.task, maker.pool
        self.posterior, self.conditional = maker.make_backbone(), maker.make_backbone()
        d, outputs = self.posterior.out_dim, self.task.outputs
        self.posterior_head = maker.make_head(in_dim=d + outputs, out_dim=k, layers=0)
        self.conditional_head = maker.make_head(in_dim=2 * d, layers=0)
        self.vectors = nn.Parameter(torch.zeros(k, d))

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(B, k) log q of each graph, and (B, k) its loss under each environment."""
        h, k = self.pool(self.posterior(batch), batch), len(self.vectors)
        log_q = self.posterior_head(torch.cat([h, as_vector(batch.y, self.task)], 1)).log_softmax(1)
        h = self.pool(self.conditional(batch), batch)
        paired = torch.cat([h.repeat_interleave(k, 0), self.vectors.repeat(len(h), 1)], 1)
        risk = per_sample_loss(self.conditional_head(paired), batch.y.repeat_interleave(k, 0), self.task)
        return log_q, risk.reshape(-1, k)


def as_vector(y: Tensor, task: Task) -> Tensor:
    """(B, outputs) one-hot classes; for several tasks the labels, zero where missing."""
    return torch.nan_to_num(y, nan=0.0) if task.kind == "multitask" else F.one_hot(y, task.num_classes).float()


@hookimpl
def bench_register(register: Register) -> None:
    register(MoleOOD)
