"""Batches of the encoders' training loop where they are bounded by nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from harness import PackedGraphs, RawGraph
from harness.randomness import generator
from plugins.encoders._common import train
from plugins.encoders.graphcl import GraphCL


def test_a_large_graph_is_trained_on_together_with_another():
    nodes = [50, *[2] * 10]
    edges = np.array([[0, 1], [1, 0]])
    graphs = PackedGraphs.pack([RawGraph(np.ones((count, 1), np.float32), edges, 0) for count in nodes])
    encoder = GraphCL(snapshots=[4], batch_size=4, max_batch_nodes=6)
    encoder.rng = generator(0, "method")
    module, seen = nn.Linear(1, 1), []

    def loss(batch):
        seen.append(batch)
        return module(batch.x).mean()

    list(train(encoder, module, loss, replace(graphs, max_batch_nodes=encoder.max_batch_nodes)))
    assert all(batch.num_graphs >= 2 and (batch.num_nodes <= 6 or 0 in batch.index) for batch in seen)
    counts = torch.cat([batch.index for batch in seen]).bincount(minlength=11)
    assert counts.min() >= 3, "only a last batch of one graph is left out"
