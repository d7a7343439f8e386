"""A learner without graphs' cost, and small packed graphs, for tests of the loop and the sampler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from harness import Backbone, Baseline, Features, PackedGraphs, RawGraph, Task
from harness.suite.settings import TrainSettings
from harness.training.loop import TrainingData, total_steps
from harness.training.networks import LearnerInfo, ModelSpec

CLASSES = 3


def packed(n: int, env: Sequence[int] | Tensor | None = None) -> PackedGraphs:
    """n graphs of two nodes; the features of the i-th are i and its label, which is i modulo 3."""
    edges = np.array([[0, 1], [1, 0]])
    raw = [RawGraph(np.full((2, 2), (i, i % CLASSES), dtype=np.float32), edges, 0) for i in range(n)]
    ids = None if env is None else torch.as_tensor(env)
    return replace(PackedGraphs.pack(raw), y=torch.arange(n) % CLASSES, env=ids)


class Linear(Backbone):
    """One linear map of the node features."""

    name = "linear"

    def build(self, node_features: Features, edge_features: Features) -> None:
        del edge_features
        self.map = nn.Linear(node_features.sizes[0], self.hidden)

    def forward(self, batch: Any, x: Tensor | None = None, edge_weight: Tensor | None = None) -> Tensor:
        del edge_weight
        return self.map((batch.x if x is None else x) / 10)  # type: ignore[no-any-return]


class Watched(Baseline):
    """ERM that remembers its batches and its learning rates; head and backbone may have an optimizer each."""

    name = "watched"
    separate = False

    def on_fit_start(self, train: PackedGraphs) -> None:
        del train
        self.seen: list[list[Tensor]] = []
        self.rates: list[list[float]] = []

    def on_epoch_start(self, train: PackedGraphs) -> None:
        del train
        self.seen.append([])

    def optimizers(self) -> list[torch.optim.Optimizer]:
        if not self.separate:
            return super().optimizers()
        return [self.make_optimizer(self.backbone.parameters()), torch.optim.SGD(self.head.parameters(), lr=0.5)]

    def training_step(self, batch: Any, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
        self.seen[-1].append(batch.index)
        self.rates.append([group["lr"] for optimizer in optimizers for group in optimizer.param_groups])
        return super().training_step(batch, optimizers)


def ready(
    settings: TrainSettings, n: int, *, cls: type[Watched] = Watched, train: PackedGraphs | None = None, **setup: Any
) -> Watched:
    """A learner, set up for n training graphs: by default those of :func:`packed`."""
    info = LearnerInfo(
        Task("multiclass", CLASSES),
        Features("numeric", (2,)),
        Features("none"),
        num_train=n,
        total_steps=total_steps(packed(n) if train is None else train, settings),
        epochs=settings.epochs,
    )
    learner = cls()
    learner.setup(info, ModelSpec(Linear, {"hidden": 4}, head_layers=1), seed=0, **setup)
    return learner


def data(train: PackedGraphs, score: Callable[[str, Tensor], float | None] = lambda *_: 0.5) -> TrainingData:
    """Training data with a validation split of six graphs."""
    return TrainingData(train, {"val": packed(6).without_labels()}, score, "val")
