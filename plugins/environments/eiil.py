"""EIIL's environments: the split on which a reference model breaks invariance most (Creager et al., ICML 2021)."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from harness import Adam, Environment, PackedGraphs, Register, Task, hookimpl, hparam, upstream
from harness.nn import has_label, scale_gradient

FLAT = 1e-4
"""A reference whose derivatives have a median below this has fitted nearly every graph: there is nothing to split."""
SMALLEST_SHARE = 0.02


class EIIL(Environment):
    """Two environments that maximise the IRM penalty of a frozen reference ERM.

    With g_i the derivative of graph i's loss by a factor on the reference's logits, and soft memberships
    q_i = sigmoid(a_i), a_i ~ N(0, 1), gradient ascent on a finds a maximum of

        1/2 [ (1/n sum_i q_i g_i)^2 + (1/n sum_i (1 - q_i) g_i)^2 ],

    times n, so that the step does not depend on the number of graphs. Graphs with q > 1/2 are environment 1; which
    one is called 1 is arbitrary. Graphs without any label belong to none. Where the reference has fitted nearly
    everything, or an environment would hold fewer than 2 % of the graphs, the split is random and a flag says so.

    Citation: Creager, Jacobsen and Zemel, *Environment Inference for Invariant Learning*, ICML 2021.
    """

    name = "eiil"
    upstream = {"reference": upstream("baseline", "erm", train={"epochs": "$ref_epochs"}, checkpoint="$ref_checkpoint")}
    ref_epochs: int | None = hparam(
        10, low=1, search=[5, 10, 20], help="epochs of the reference ERM; none: as many as the method's own training"
    )
    ref_checkpoint: str = hparam("last", choices=["last", "best-val"], help="which weights of the reference")
    lr: float = hparam(0.1, low=0.0, help="learning rate of Adam on the memberships")
    steps: int = hparam(500, low=1, help="steps of Adam on the memberships")

    def assign(self, train: PackedGraphs, oracle: Mapping[str, Tensor], upstream: Mapping[str, Any]) -> Tensor:
        del oracle
        logits = upstream["reference"].logits.double()
        task = task_of(logits, train.y)
        known = has_label(train.y, task)
        gradient = scale_gradient(logits[known], train.y[known], task)
        ids = torch.full((len(train),), -1, device=known.device)
        ids[known] = self.split(gradient)
        return ids

    def split(self, gradient: Tensor) -> Tensor:
        """(n,) ids 0 and 1 from the derivatives g (n,)."""
        if float(gradient.abs().median()) < FLAT:
            return self.random_split(gradient, "the reference model has fitted nearly every training graph")
        a = torch.randn(len(gradient), generator=self.rng, dtype=gradient.dtype).to(gradient.device).requires_grad_()
        adam = Adam([a], lr=self.lr)
        for _ in range(self.steps):
            adam.zero_grad()
            (-len(gradient) * objective(a.sigmoid(), gradient)).backward()
            adam.step()
        ids = (a.detach() > 0).long()
        share = int(torch.bincount(ids, minlength=2).min()) / len(ids)
        if share < SMALLEST_SHARE:
            return self.random_split(gradient, f"an environment would hold {share:.1%} of the graphs")
        return ids

    def random_split(self, gradient: Tensor, why: str) -> Tensor:
        """Two random halves, with a flag."""
        self.flags.append(f"random split: {why}")
        return torch.randperm(len(gradient), generator=self.rng).to(gradient.device) % 2


def objective(q: Tensor, gradient: Tensor) -> Tensor:
    """Half the sum of the two environments' squared mean derivatives, both divided by the number of all graphs.

    Args:
        q: (n,) probabilities of environment 1.
        gradient: (n,) derivative of each graph's loss by a factor on its logits.
    """
    return 0.5 * ((q * gradient).mean().square() + ((1 - q) * gradient).mean().square())


def task_of(logits: Tensor, y: Tensor) -> Task:
    """The task that logits and labels belong to: several tasks have a row of labels per graph."""
    width = logits.size(1)
    return Task("multitask", 2, width) if y.dim() == 2 else Task("multiclass", width)


@hookimpl
def bench_register(register: Register) -> None:
    register(EIIL)
