"""Components of which the kit's toy run is made; none is registered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from harness.data import Dataset, Declaration, RawDataset, RawGraph, TaskKind
from harness.graphs import Batch, PackedGraphs
from harness.hparams import hparam
from harness.nn.layers import pool
from harness.randomness import derive
from harness.testing.toys import FEATURES, TASKS, KitBackbone, raw_graphs, toy
from harness.training.bases import Baseline, Decorrelator, Encoder, Fitted, Quantifier
from harness.training.optim import Adam

SPLITS = {"train": range(16), "val": range(16, 30), "test": range(30)}


class KitDataset(Dataset):
    """The kit's toy graphs in three splits, with or without what not every dataset has."""

    name = "conformance-kit"
    family = "synthetic"
    task: str = hparam("multiclass", choices=["multiclass", "binary", "multitask"], help="task")
    bare: bool = hparam(False, help="without environments and without ground truth")
    one_class: bool = hparam(False, help="every graph has the label 0")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Three splits, and as said."""
        del data_dir
        base = () if self.bare else ("base",)
        return Declaration(TASKS[self.task], FEATURES, environments=0 if self.bare else 2, oracle=base)

    def build(self, data_dir: Path | None) -> RawDataset:
        """The graphs; those of the test split are all of the others again with other features."""
        del data_dir
        kind: Any = self.task
        graphs = self._graphs(kind)
        rng = np.random.default_rng(derive(1, "conformance/test"))
        moved = [replace(g, x=(g.x + rng.normal(size=g.x.shape)).astype(np.float32)) for g in graphs]
        splits = {name: [(moved if name == "test" else graphs)[i] for i in rows] for name, rows in SPLITS.items()}
        return RawDataset(splits)

    def _graphs(self, kind: TaskKind) -> list[RawGraph]:
        data = toy(kind)
        graphs = [*raw_graphs(data.train), *raw_graphs(data.validation)]
        labels = torch.cat([data.train.y, data.validation_y]).numpy()
        known = self.declare(None)
        found = []
        for place, graph in enumerate(graphs):
            label = labels[place] * 0 if self.one_class else labels[place]
            truth = {"base": (place * 7 // 5) % known.task.num_classes} if known.oracle else {}
            env = -1 if self.bare else place % 2
            found.append(replace(graph, y=label if kind == "multitask" else int(label), env=env, oracle=truth))
        return found


class KitBaseline(Baseline):
    """ERM with two more terms, so that there is something to tune."""

    name = "conformance-kit"
    size: float = hparam(0.1, low=0.0, weight_of="size", help="weight of the logits' size")
    tilt: float = hparam(0.1, low=0.0, weight_of="tilt", help="weight of the first logit")

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """The risk and the two terms."""
        logits = self(batch)
        risk = self.risk(logits, batch)
        return {"erm": risk.mean(), "size": logits.square().mean(), "tilt": logits[:, 0].mean()}


class KitDecorrelator(Decorrelator):
    """ERM that builds on a pipeline and makes nothing of it."""

    name = "conformance-kit"

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """The risk."""
        return {"erm": self.risk(self(batch), batch).mean()}


class _Network(nn.Module):
    def __init__(self, backbone: KitBackbone) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, batch: Batch) -> Tensor:
        return pool(self.backbone(batch), batch, "mean")


class KitEncoder(Encoder):
    """Learns embeddings of norm one."""

    name = "conformance-kit"

    def fit(self, graphs: PackedGraphs) -> Iterator[tuple[int, nn.Module]]:
        """An epoch is one step on all graphs."""
        backbone = KitBackbone(layers=self.layers, hidden=self.hidden)
        backbone.build(self.node_features, self.edge_features)
        network = _Network(backbone).to(graphs.x.device)
        adam = Adam(network.parameters(), lr=self.lr)
        everything = graphs.batch(torch.arange(len(graphs)))
        for epoch in range(1, max(self.snapshots) + 1):
            adam.zero_grad()
            (network(everything).square().sum(1) - 1).square().mean().backward()
            adam.step()
            if epoch in self.snapshots:
                yield epoch, network


class KitQuantifier(Quantifier):
    """Gaussian classes of one spread; a class without graphs has the mean of all."""

    name = "conformance-kit"

    def settings(self) -> list[dict[str, Any]]:
        """Two candidates."""
        return [{"spread": 1.0}, {"spread": 3.0}]

    def fit(
        self, embeddings: NDArray[np.float64], labels: NDArray[np.int64], num_classes: int, **setting: Any
    ) -> Fitted:
        """Class means."""
        groups = [embeddings[labels == y] for y in range(num_classes)]
        means = np.stack([(group if len(group) else embeddings).mean(0) for group in groups])

        def predict(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            distance = ((rows[:, None] - means) ** 2).sum(2)
            odds = np.exp((distance.min(1, keepdims=True) - distance) / setting["spread"])
            found: NDArray[np.float64] = odds / odds.sum(1, keepdims=True)
            return found

        return Fitted(predict)
