"""DGI: nodes should agree with their graph's summary, and corrupted nodes should not (Velickovic et al., ICLR 2019)."""

import math
from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness import Batch, Encoder, Features, PackedGraphs, Register, hookimpl, hparam
from harness.nn import keeping_statistics, local_global_jsd, pool, propagate
from plugins.encoders._common import GIN, train


class DGI(Encoder):
    """A discriminator tells nodes h_v of a graph from those of its corrupted copy, given the graph's summary s.

    P. Velickovic, W. Fedus, W. L. Hamilton, P. Lio, Y. Bengio and R. D. Hjelm, *Deep Graph Infomax*, ICLR 2019,
    proposed for one large graph, here for many: s_b = sigmoid(mean of graph b's node vectors), D(h, s) = h W s, and
    the loss is the binary cross-entropy of D(h_v, s) towards 1 and D(h'_v, s) towards 0, ln 2 where nothing is told
    apart. h' comes from the same network after the node features were shuffled within each graph. The embedding is
    the readout of the node vectors.

    Where features are equal within each training graph (or throughout, for shuffles across the batch), a shuffle
    changes nothing and the loss cannot fall below ln 2. Then the negatives are nodes of the batch's other graphs, and
    ``flags`` says so.
    """

    name = "dgi"
    negatives: str = hparam(
        "within",
        choices=["within", "across", "in-batch"],
        help="features shuffled within graphs or across the batch, or other graphs' nodes",
    )
    discriminator: str = hparam(
        "bilinear", choices=["bilinear", "dot"], help="h W s, or the product of h and a linear map of s with bias"
    )
    readout: str = hparam("mean", choices=["mean", "sum"], help="of the embedding; the summary is always of the mean")
    dropout: float = hparam(0.0, low=0.0, high=1.0, help="dropout probability after each layer")

    def fit(self, graphs: PackedGraphs) -> Iterator[tuple[int, nn.Module]]:
        negatives = self.effective_negatives(graphs)
        module = Summarised(
            self.node_features, self.hidden, self.layers, self.dropout, self.discriminator, self.readout
        )
        yield from train(self, module, partial(self.loss, module, negatives), graphs)

    def effective_negatives(self, graphs: PackedGraphs) -> str:
        """``negatives``, or ``in-batch`` with a flag where a shuffle changes no training graph."""
        if self.negatives == "in-batch" or not constant_features(graphs, within=self.negatives == "within"):
            return self.negatives
        where = "within every training graph" if self.negatives == "within" else "in all training graphs"
        flag = f"dgi: node features are equal {where}, so shuffling changes nothing; negatives are other graphs' nodes"
        self.flags = [*(text for text in self.flags if text != flag), flag]
        return "in-batch"

    def loss(self, module: "Summarised", negatives: str, batch: Batch) -> Tensor:
        """The binary cross-entropy of a batch: a live scalar."""
        x = module.gin.front(batch.x)
        nodes = module.nodes(x, batch)
        summary = module.summary(nodes, batch)
        if negatives == "in-batch":
            return 0.5 * local_global_jsd(summary, nodes, batch.batch) + math.log(2)
        order = shuffle(batch, self.rng, within=negatives == "within")
        own = summary.index_select(0, batch.batch)
        with keeping_statistics(module):  # nothing is embedded from shuffled features
            shuffled = module.nodes(x[order], batch)
        true, corrupted = ((h * own).sum(1) for h in (nodes, shuffled))
        return 0.5 * (F.softplus(-true).mean() + F.softplus(corrupted).mean())


class Summarised(nn.Module):
    """A GIN and the discriminator's map of the summary; maps a batch to (B, hidden) graph embeddings."""

    def __init__(
        self, features: Features, hidden: int, layers: int, dropout: float, discriminator: str, readout: str
    ) -> None:
        super().__init__()
        self.gin = GIN(features, hidden, layers, dropout)
        self.discriminator = nn.Linear(hidden, hidden, bias=discriminator == "dot")
        self.readout = readout

    def forward(self, batch: Batch) -> Tensor:
        return pool(self.nodes(self.gin.front(batch.x), batch), batch, self.readout)

    def nodes(self, x: Tensor, batch: Batch) -> Tensor:
        """(N, hidden) node vectors from the front's output."""
        return self.gin(x, partial(propagate, batch=batch))

    def summary(self, nodes: Tensor, batch: Batch) -> Tensor:
        """(B, hidden) vectors whose products with nodes are the discriminator's logits."""
        return self.discriminator(pool(nodes, batch, "mean").sigmoid())


def shuffle(batch: Batch, rng: torch.Generator, *, within: bool) -> Tensor:
    """(N,) a random order of the nodes; with ``within`` each graph's positions hold its own nodes."""
    order = torch.randperm(batch.num_nodes, generator=rng).to(batch.batch.device)
    return order[torch.sort(batch.batch[order], stable=True).indices] if within else order


def constant_features(graphs: PackedGraphs, *, within: bool) -> bool:
    """Return True if all nodes have the same features: all of one graph, for each graph, or all of all graphs."""
    sizes = graphs.node_ptr.diff()
    first = torch.repeat_interleave(graphs.node_ptr[:-1], sizes) if within else torch.zeros_like(graphs.node_ptr[:1])
    return bool((graphs.x == graphs.x[first]).all()) if graphs.x.numel() else True


@hookimpl
def bench_register(register: Register) -> None:
    register(DGI)
