"""Tell linked nodes from random pairs (Kipf and Welling, arXiv:1611.07308)."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from harness import Batch, Encoder, Features, PackedGraphs, Register, hookimpl
from harness.nn import GINConv, make_front, pool
from torch import Tensor, nn


class Network(nn.Module):
    """Node embeddings by graph convolutions, and their mean as a graph's embedding."""

    def __init__(self, features: Features, width: int, layers: int) -> None:
        super().__init__()
        self.front = make_front(features, width)
        self.convs = nn.ModuleList(GINConv(width, width) for _ in range(layers))

    def nodes(self, batch: Batch) -> Tensor:
        h: Tensor = self.front(batch.x)
        for conv in self.convs:
            h = conv(h, batch)
        return h

    def forward(self, batch: Batch) -> Tensor:
        return pool(self.nodes(batch), batch, "mean")


class NewComponent(Encoder):
    """Logistic loss on inner products of linked nodes, and of as many random pairs.

    An encoder trains without labels. `layers`, `hidden`, `snapshots`, `batch_size` and
    `lr` are inherited. Say in this docstring what the encoder does, and the paper.
    """

    name = "new-component"

    def fit(self, graphs: PackedGraphs) -> Iterator[tuple[int, nn.Module]]:
        """Yield the network after each epoch of `self.snapshots`."""
        network = Network(self.node_features, self.hidden, self.layers)
        network.to(graphs.x.device)
        adam = torch.optim.Adam(network.parameters(), lr=self.lr)
        for epoch in range(1, max(self.snapshots) + 1):
            # Every draw comes from self.rng: one seed gives one result.
            order = torch.randperm(len(graphs), generator=self.rng)
            for batch in graphs.batches(self.batch_size, order):
                loss = self.pairs(network.nodes(batch), batch)
                adam.zero_grad()
                loss.backward()
                adam.step()
            if epoch in self.snapshots:
                yield epoch, network

    def pairs(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of one batch from its (nodes, width) embeddings."""
        source, target = batch.edge_index
        drawn = torch.randint(batch.num_nodes, target.shape, generator=self.rng)
        linked = (h[source] * h[target]).sum(1)
        other = (h[source] * h[drawn.to(h.device)]).sum(1)
        # The sum with zero keeps the loss alive where no graph of a batch has an edge.
        count = max(len(source), 1)
        return (F.softplus(-linked) + F.softplus(other)).sum() / count + 0.0 * h.sum()


@hookimpl
def bench_register(register: Register) -> None:
    register(NewComponent)
