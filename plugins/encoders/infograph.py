"""InfoGraph: a graph's vector should know its nodes' vectors at every depth (Sun et al., ICLR 2020)."""

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness import Batch, Encoder, Features, PackedGraphs, Register, hookimpl, hparam
from harness.nn import local_global_jsd, pool, reverse_gradient
from plugins.encoders._common import GIN, train
from plugins.encoders.mvgrl import Residual


class InfoGraph(Encoder):
    """Node vectors should agree with their own graph's vector and not with those of other graphs of the batch.

    One GIN; a node's vector h is the concatenation of all layers' outputs, a graph's g the sum of its nodes'. Two
    residual MLPs project nodes and graphs, and the loss is the Jensen-Shannon contrast J(g, h) within the batch, so
    that the negatives are other graphs' nodes. The embedding is g before its projection, (B, layers * hidden).
    ``prior`` adds a discriminator D that tells g from uniform noise u:
    prior * (-E log D(u) - E log(1 - D(g))).

    F.-Y. Sun, J. Hoffmann, V. Verma and J. Tang, *InfoGraph: Unsupervised and Semi-supervised Graph-Level
    Representation Learning via Mutual Information Maximization*, ICLR 2020.
    """

    name = "infograph"
    hidden: int = hparam(32, low=1, help="width of each layer; the embedding has ``layers`` times as many numbers")
    prior: float = hparam(0.0, low=0.0, help="gamma: weight of the match with a uniform prior; 0 leaves it out")
    prior_form: str = hparam(
        "adversarial",
        choices=["adversarial", "joint"],
        active={"prior": "> 0"},
        help="the encoder works against the discriminator, or, as in public code, with it",
    )
    dropout: float = hparam(0.0, low=0.0, high=1.0, help="dropout probability after each layer")
    probes = {"prior_form": {"prior": 0.1, "prior_form": "joint"}}

    def fit(self, graphs: PackedGraphs) -> Iterator[tuple[int, nn.Module]]:
        module = LocalGlobal(self.node_features, self.hidden, self.layers, self.dropout, prior=self.prior > 0)
        yield from train(self, module, partial(self._loss, module), graphs)

    def _loss(self, module: "LocalGlobal", batch: Batch) -> Tensor:
        nodes = module.nodes(batch)
        graphs = pool(nodes, batch)
        loss = module.contrast(graphs, nodes, batch)
        if not self.prior:
            return loss
        noise = torch.rand(graphs.shape, generator=self.rng).to(graphs)
        return loss + self.prior * module.prior(noise, graphs, adversarial=self.prior_form == "adversarial")


class LocalGlobal(nn.Module):
    """A GIN, the two projections and the prior's discriminator; maps a batch to (B, layers * hidden)."""

    def __init__(self, features: Features, hidden: int, layers: int, dropout: float, *, prior: bool = False) -> None:
        super().__init__()
        width = hidden * layers
        self.gin = GIN(features, hidden, layers, dropout)
        self.node_projection, self.graph_projection = Residual(width), Residual(width)
        if prior:
            parts = [part for _ in range(2) for part in (nn.Linear(width, width), nn.ReLU())]
            self.discriminator = nn.Sequential(*parts, nn.Linear(width, 1))

    def forward(self, batch: Batch) -> Tensor:
        return pool(self.nodes(batch), batch)

    def nodes(self, batch: Batch) -> Tensor:
        """(N, layers * hidden) outputs of all layers."""
        x, outputs = self.gin.front(batch.x), []
        for conv in self.gin.convs:
            x = self.gin.dropout(conv(x, batch))
            outputs.append(x)
        return torch.cat(outputs, 1)

    def contrast(self, graphs: Tensor, nodes: Tensor, batch: Batch) -> Tensor:
        """The contrast of the projected vectors: a live scalar."""
        return local_global_jsd(self.graph_projection(graphs), self.node_projection(nodes), batch.batch)

    def prior(self, noise: Tensor, graphs: Tensor, *, adversarial: bool) -> Tensor:
        """-E log D(noise) - E log(1 - D(graphs)) of (B, d) each; a gradient that is reversed for the encoder."""
        graphs = reverse_gradient(graphs) if adversarial else graphs
        return F.softplus(-self.discriminator(noise)).mean() + F.softplus(self.discriminator(graphs)).mean()


@hookimpl
def bench_register(register: Register) -> None:
    register(InfoGraph)
