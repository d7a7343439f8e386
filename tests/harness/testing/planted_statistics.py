"""Learners whose BatchNorm statistics follow what is not predicted from; the conformance kit must find them."""

import torch
from torch import nn

from harness import Baseline, hparam
from harness.nn import keeping_statistics


class MixedStatistics(Baseline):
    """Another pass moves the running statistics of the network that predicts."""

    name = "mixed-statistics"

    def beside(self, batch):
        return super().loss(batch.keep_edges(torch.zeros(batch.num_edges, dtype=torch.bool, device=batch.x.device)))

    def loss(self, batch):
        return {**super().loss(batch), "bare": self.beside(batch)["erm"]}


class MixedStatisticsInOneMode(MixedStatistics):
    """With one choice alone."""

    name = "mixed-statistics-in-one-mode"
    statistics: str = hparam("kept", choices=["kept", "mixed"])

    def beside(self, batch):
        if self.statistics == "mixed":
            return super().beside(batch)
        with keeping_statistics(self.backbone):
            return super().beside(batch)


class DeclaredStatistics(MixedStatisticsInOneMode):
    """No bug: it says so."""

    name = "declared-statistics"
    foreign_statistics = {"statistics": ["mixed"]}


class OwnNorm(nn.Module):
    """Normalisation that is none of torch's."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x):
        if self.training:
            self.running_mean = self.running_mean.lerp(x.detach().mean(0), 0.1)
        return (x - (x.mean(0) if self.training else self.running_mean)) * self.running_var.rsqrt()


class MixedStatisticsOfItsOwn(MixedStatistics):
    """Another pass moves those of a norm of its own."""

    name = "mixed-statistics-of-its-own"

    def build(self):
        super().build()
        self.head = nn.Sequential(OwnNorm(self.backbone.out_dim), self.head)

    def beside(self, batch):
        with keeping_statistics(self.backbone):
            return super().beside(batch)


class MovedByAHook(Baseline):
    """Statistics move between the steps."""

    name = "moved-by-a-hook"

    def on_epoch_start(self, train):
        with torch.no_grad():
            self.embed(train.batch(torch.arange(5)))
