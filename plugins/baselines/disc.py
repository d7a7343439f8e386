"""DisC: a branch that learns the bias tells the causal branch what to attend to (Fan et al., NeurIPS 2022)."""

import itertools

import torch
from torch import Tensor, nn

from harness import (
    Baseline,
    Batch,
    BatchNorm,
    EdgeScorer,
    Features,
    GCNConv,
    Subgraph,
    deviation,
    edge_ends,
    generalized_cross_entropy,
    hookimpl,
    hparam,
    make_front,
    subgraph,
    top_k_edges,
)
from plugins.baselines._statistics import MIXED, second_pass, statistics_switch


class DisC(Baseline):
    """Soft masks part a graph into a causal and a bias graph, each with an encoder; swaps make the two independent.

    With z_c, z_b the two embeddings, sg the stop of gradients, CE and GCE_q the cross-entropy and its generalised form
    (Zhang and Sabuncu, NeurIPS 2018), and l_c, l_b the cross-entropies of C_c([z_c; sg z_b]) and C_b([sg z_c; z_b]),

        W_i = sg l_b,i / (l_b,i + l_c,i + 1e-8)      (Nam et al., *Learning from Failure*, NeurIPS 2020)
        L_D = mean_i W_i l_c,i + bias * mean_i GCE_q(C_b([sg z_c; z_b]), y)_i
        L = L_D + swap * L_G,

    where L_G is L_D with z_b, and the label of GCE, taken from another graph of the batch; it starts after the share
    ``swap_start`` of the epochs. Masks c multiply messages and node features of the causal branch, 1 - c those of the
    bias branch. Features that are not numbers are embedded first, by each branch for itself.

    ``variant: gala`` is the form in GALA's code: hard top-share and left-over subgraphs, messages weighted by
    sigmoid(±score), one network for both, heads on z_c and on z_b alone, no swap. Citation: Fan, Wang, Mo, Shi and
    Tang, *Debiasing Graph Neural Networks via Learning Disentangled Causal Substructure*, NeurIPS 2022.
    """

    name = "disc"
    foreign_statistics = MIXED
    tasks = frozenset({"binary", "multiclass"})
    variant: str = hparam("disc", choices=["disc", "gala"], help="the authors' networks and swap, or GALA's form")
    q: float = hparam(0.7, low=0.01, high=1.0, search=[0.5, 0.7, 0.9], help="of the generalised cross-entropy")
    bias: float = hparam(1.0, low=0.0, search=[0.5, 1.0, 2.0], weight_of="bias", help="weight of the bias branch")
    swap: float = hparam(
        15.0,
        low=0.0,
        search=[1.0, 5.0, 10.0, 15.0],
        weight_of="swap",
        active={"variant": ["disc"]},
        help="weight of the loss on swapped embeddings",
    )
    swap_start: float = hparam(
        0.5,
        low=0.0,
        high=1.0,
        search=[0.25, 0.5],
        active={"variant": ["disc"]},
        help="share of the epochs before swapping",
    )
    gce: str = hparam(
        "paper", choices=["paper", "scaled"], help="(1 - p^q) / q, or q sg(p^q) CE, whose gradient is q times as large"
    )
    weights: str = hparam(
        "samples", choices=["samples", "batch"], help="W for each graph, or one from the batch's means"
    )
    floor: float = hparam(0.0, low=0.0, high=1.0, help="smallest W; keeps the causal branch alive where l_b vanishes")
    ratio: float = hparam(
        0.25,
        low=0.01,
        high=1.0,
        search=[0.25, 0.4, 0.6, 0.8],
        active={"variant": ["gala"]},
        help="share of each graph's edges that are causal",
    )
    statistics: str = statistics_switch({"variant": ["gala"]})
    probes = {
        "swap_start": {"swap_start": 0.0},
        "floor": {"floor": 0.9},
    }
    deviations = (
        deviation(
            "weights of the causal loss",
            paper="one for each graph",
            public="the authors' GIN returns the batch's mean loss, hence one weight for the batch; their GCN is right",
            ours="one for each graph",
            switch="weights: batch",
        ),
        deviation(
            "generalised cross-entropy",
            paper="(1 - p^q) / q",
            public="the authors' and GALA's: q p^q CE with p^q held fixed, whose gradient is q times as large",
            ours="(1 - p^q) / q",
            switch="gce: scaled",
        ),
        deviation(
            "what the two branches are",
            paper="soft masks, two encoders, classifiers on both embeddings, swapped after a while",
            public="GALA's DisC: hard subgraphs, one shared network, a head for each part, no swap",
            ours="the paper's",
            switch="variant: gala",
        ),
        deviation(
            "BatchNorm's running statistics",
            paper="an encoder for each branch",
            public="GALA's: from causal and left-over parts in turn, though evaluation sees causal ones only",
            ours="an encoder for each branch; in GALA's form from causal parts, with the same training",
            switch="variant: gala, statistics: both",
        ),
        deviation(
            "encoders, classifiers and optimizer",
            paper="GCN, GIN or GCNII encoders with linear classifiers",
            public="the authors': four layers, mean readout; Adam at 0.01, halved when the validation loss stands "
            "still; batches of 256",
            ours="the suite's network, readout, head, learning rate and batches, as for every other row",
            switch="model.head_layers: 0, train.lr: 0.01, train.batch_size: 256",
        ),
        deviation(
            "unused parts",
            paper="none",
            public="the authors' has loss averages, a second masker and a dependence measure that no loss reads",
            ours="left out",
        ),
    )

    def build(self) -> None:
        width, features = self.node_width, self.info.node_features
        if self.variant == "gala":
            super().build()
            self.masker = self.make_backbone()
            self.scorer = EdgeScorer(width)
            outputs = self.info.task.outputs
            self.bias_head = nn.Sequential(self.make_head(), nn.Linear(outputs, outputs))
            return
        numeric = features.kind == "numeric"
        source = None if numeric else width
        self.front, self.bias_front = (nn.Identity() if numeric else make_front(features, width) for _ in range(2))
        self.backbone, self.bias_backbone = (self.make_backbone(in_dim=source) for _ in range(2))
        self.head, self.bias_head = (self.make_head(in_dim=2 * width) for _ in range(2))
        self.masker = Masker(features, width)

    def branches(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The embeddings z_c and z_b, (B, d) each."""
        if self.variant == "gala":
            return self.hard_branches(batch)
        edge, node = self.masker(batch)
        x = self.front(batch.x) * node, self.bias_front(batch.x) * (1 - node)
        causal = self.backbone(batch, x=x[0], edge_weight=edge)
        bias = self.bias_backbone(batch, x=x[1], edge_weight=1 - edge)
        return self.pool(causal, batch), self.pool(bias, batch)

    def hard_branches(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """GALA's form of :meth:`branches`; a graph without left-over edges has a z_b of zeros."""
        scores, kept = self.split(batch)
        z_c = self.embed_part(subgraph(batch, kept), scores)
        left = subgraph(batch, ~kept, without_edges="empty")
        if left.edges.numel() == 0:
            return z_c, torch.zeros_like(z_c)
        with second_pass(self, self.backbone):
            return z_c, self.embed_part(left, -scores)

    def split(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Scores of the edges (E,), and which are causal (E,), in GALA's form."""
        scores = self.scorer(self.masker(batch), batch)
        return scores, top_k_edges(scores, batch, self.ratio)

    def embed_part(self, part: Subgraph, scores: Tensor) -> Tensor:
        """(B, d) embeddings of a part, its messages weighted by the sigmoid of its edges' scores."""
        return self.pool(self.backbone(part.batch, edge_weight=scores[part.edges].sigmoid()), part.batch)

    def predict_causal(self, z_c: Tensor, z_b: Tensor) -> Tensor:
        """(B, C) logits of the causal classifier, which does not train z_b."""
        return self.head(z_c if self.variant == "gala" else torch.cat([z_c, z_b.detach()], 1))

    def predict_bias(self, z_c: Tensor, z_b: Tensor) -> Tensor:
        """(B, C) logits of the bias classifier, which does not train z_c."""
        return self.bias_head(z_b if self.variant == "gala" else torch.cat([z_c.detach(), z_b], 1))

    def embed(self, batch: Batch) -> Tensor:
        if self.variant == "disc":
            return torch.cat(self.branches(batch), 1)
        scores, kept = self.split(batch)
        return self.embed_part(subgraph(batch, kept), scores)

    def weight(self, term: str) -> float:
        early = term == "swap" and self.epoch < self.swap_start * self.info.epochs
        return 0.0 if early else super().weight(term)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        z_c, z_b = self.branches(batch)
        causal, biased = self.risk(self.predict_causal(z_c, z_b), batch), self.predict_bias(z_c, z_b)
        importance = self.importance(causal, self.risk(biased, batch))
        terms = {
            "causal": (importance * causal).mean(),
            "bias": amplified(biased, batch.y, self.q, self.gce).mean(),
        }
        if self.variant == "disc":
            other = torch.randperm(len(z_b), generator=self.rng).to(z_b.device)
            terms["swap"] = self.swapped(batch, z_c, z_b, importance, other)
        return terms

    def swapped(self, batch: Batch, z_c: Tensor, z_b: Tensor, importance: Tensor, other: Tensor) -> Tensor:
        """L_G, in which graph i has the bias embedding of graph ``other[i]``."""
        z_b = z_b[other]
        causal = self.risk(self.predict_causal(z_c, z_b), batch)
        biased = amplified(self.predict_bias(z_c, z_b), batch.y[other], self.q, self.gce)
        return (importance * causal).mean() + self.weight("bias") * biased.mean()

    def importance(self, causal: Tensor, biased: Tensor) -> Tensor:
        """(B,) W from the two cross-entropies (B,), without gradient."""
        if self.weights == "batch":
            causal, biased = (loss.mean().expand(len(loss)) for loss in (causal, biased))
        return relative_difficulty(causal, biased).clamp(min=self.floor)


class Masker(nn.Module):
    """Masks in (0, 1) from a GCN of two layers: edges' from the embeddings of both ends, nodes' from their own.

    Args:
        features: of the nodes.
        width: d of the GCN.
    """

    def __init__(self, features: Features, width: int) -> None:
        super().__init__()
        self.front = make_front(features, width)
        self.convs = nn.ModuleList(GCNConv(width, width) for _ in range(2))
        self.edge, self.node = halving(2 * width), halving(width)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The masks of the edges (E,) and of the nodes (N, 1)."""
        h = self.front(batch.x)
        h = self.convs[1](torch.relu(self.convs[0](h, batch)), batch)
        return self.edge(edge_ends(h, batch)).squeeze(1).sigmoid(), self.node(h).sigmoid()


def halving(width: int) -> nn.Sequential:
    """Three hidden layers, each half as wide as the one before, with BatchNorm and ReLU; then one output."""
    widths = [max(width >> level, 1) for level in range(4)]
    hidden = [part for a, b in itertools.pairwise(widths) for part in (nn.Linear(a, b), BatchNorm(b), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(widths[-1], 1))


def relative_difficulty(causal: Tensor, biased: Tensor) -> Tensor:
    """(B,) W = l_b / (l_b + l_c + 1e-8), without gradient: near one where only the bias branch fails."""
    causal, biased = causal.detach(), biased.detach()
    return biased / (biased + causal + 1e-8)


def amplified(logits: Tensor, y: Tensor, q: float, form: str) -> Tensor:
    """(B,) generalised cross-entropy: ``paper`` (1 - p^q) / q, or ``scaled`` q sg(p^q) CE."""
    if form == "paper":
        return generalized_cross_entropy(logits, y, q)
    entropy = nn.functional.cross_entropy(logits, y, reduction="none")
    return q * (-q * entropy.detach()).exp() * entropy


@hookimpl
def bench_register(register):
    register(DisC)
