"""A trained cell as an analysis sees it: batches as bounded as in training."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from harness import Features, PackedGraphs, RawGraph, Task
from harness.stages import cell as module
from harness.stages.cell import TrainedCell
from harness.suite.settings import TrainSettings

TRAINED = SimpleNamespace(
    task=Task("binary", 2),
    splits=["train", "val"],
    train="train",
    validation=["val"],
    monitor="val",
    seed=1,
    data="key",
    networks=SimpleNamespace(settings=TrainSettings(eval_batch_size=100, max_batch_nodes=6)),
)


class Counting:
    """Embeds a batch as zeros, and keeps its number of nodes."""

    reads_parts = False

    def __init__(self) -> None:
        self.nodes: list[int] = []

    def embed(self, batch):
        self.nodes.append(len(batch.x))
        return torch.zeros(batch.num_graphs, 3)


def test_embeddings_are_taken_in_batches_of_at_most_max_batch_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_store, _key, _split, *, max_batch_nodes=0, **_):
        edges = np.array([[0, 1], [1, 0]])
        pack = PackedGraphs.pack([RawGraph(np.ones((2, 1), np.float32), edges, 0)] * 8, Features("numeric", (1,)))
        pack.max_batch_nodes = max_batch_nodes
        return pack

    monkeypatch.setattr(module, "read_graphs", read)
    payload = SimpleNamespace(train=TRAINED, trained="k", checkpoint="last")
    cell = TrainedCell(SimpleNamespace(store=None), payload, ())
    learner = Counting()
    monkeypatch.setattr(TrainedCell, "learner", learner)
    assert cell.embeddings("val").shape == (8, 3)
    assert learner.nodes == [6, 6, 4]
    assert cell.graphs("val").max_batch_nodes == 6
