"""Penalties over environments: which graphs count, the risk term, and a start at another weight."""

from typing import ClassVar

import torch
from torch import Tensor

from harness import Baseline, Batch, hparam
from harness.nn import environment_mean, labelled_environments


class EnvironmentPenalty(Baseline):
    """A risk plus a penalty over the environments of a batch."""

    needs = frozenset({"environments"})
    erm_term: str = hparam(
        "samples", choices=["samples", "environments"], help="risk: mean over graphs, or over environments present"
    )

    def environments(self, batch: Batch) -> Tensor:
        """(B,) ids, -1 for graphs without any label: they count in no environment."""
        return labelled_environments(batch.env, batch.y, self.info.task)

    def mean_risk(self, risk: Tensor, env: Tensor, share: Tensor | None) -> Tensor:
        """The risk term, by ``erm_term``, of (B,) losses in which each graph counts its ``label_share``."""
        if self.erm_term == "environments" and bool((env >= 0).any()):
            return environment_mean(risk, env, share=share).mean()
        return risk.mean()


class AnnealedPenalty(EnvironmentPenalty):
    """A penalty of weight 1 that is at full weight from step ``anneal_steps`` on.

    At that step the optimizer starts afresh, once, as the moments it holds belong to another objective (Gulrajani and
    Lopez-Paz, *In Search of Lost Domain Generalization*, ICLR 2021).
    """

    annealed: ClassVar[str]
    """The loss term that starts at weight 1."""
    anneal_steps: int = hparam(
        0, low=0, help="steps with weight 1 instead of the penalty's weight; the optimizer starts afresh after"
    )

    def weight(self, term: str) -> float:
        early = term == self.annealed and self.step < self.anneal_steps
        return 1.0 if early else super().weight(term)

    def restarts(self) -> set[int]:
        """Steps at which the optimizer starts afresh."""
        return {self.anneal_steps} - {0}

    def training_step(self, batch: Batch, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
        if self.step in self.restarts():
            for optimizer in optimizers:
                optimizer.state.clear()
        return super().training_step(batch, optimizers)
