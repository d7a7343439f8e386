"""DisC: a branch that learns the bias tells the causal branch what to attend to (Fan et al., NeurIPS 2022)."""

import itertools

import torch
from torch import Tensor, nn

from harness import Batch, Features, Register, hookimpl, hparam
from harness.nn import BatchNorm, GCNConv, edge_ends, make_front, neighbour_sum, pool
from plugins.baselines._debiased import Debiased, amplified


class DisC(Debiased):
    """Soft masks part a graph into a causal and a bias graph, each with an encoder; swaps make the two independent.

    With z_c, z_b the two embeddings, sg the stop of gradients, CE and GCE_q the cross-entropy and its generalised form
    (Zhang and Sabuncu, NeurIPS 2018), and l_c, l_b the cross-entropies of C_c([z_c; sg z_b]) and C_b([sg z_c; z_b]),

        W_i = sg l_b,i / (l_b,i + l_c,i + 1e-8)      (Nam et al., *Learning from Failure*, NeurIPS 2020)
        L_D = mean_i W_i l_c,i + bias * mean_i GCE_q(C_b([sg z_c; z_b]), y)_i
        L = L_D + swap * L_G,

    where L_G is L_D with z_b, and the label of GCE, taken from another graph of the batch; it starts after the share
    ``swap_start`` of the epochs. Masks c multiply messages and node features of the causal branch, 1 - c those of the
    bias branch; both embeddings are means over nodes, whatever the suite's readout. Features that are not numbers are
    embedded first, by each branch for itself. The form in GALA's code, which other tables call DisC, is ``disc-gala``.
    Citation: Fan, Wang, Mo, Shi and Tang, *Debiasing Graph Neural Networks via Learning Disentangled Causal
    Substructure*, NeurIPS 2022.
    """

    name = "disc"
    swap: float = hparam(
        15.0, low=0.0, search=[1.0, 5.0, 10.0, 15.0], weight_of="swap", help="weight of the loss on swapped embeddings"
    )
    swap_start: float = hparam(0.5, low=0.0, high=1.0, search=[0.25, 0.5], help="share of the epochs before swapping")
    weights: str = hparam(
        "samples", choices=["samples", "batch"], help="W for each graph, or one from the batch's means"
    )
    masker: str = hparam(
        "gcn",
        choices=["gcn", "residual"],
        help="layers of the masks' network: plain GCN, or the authors' residual ones",
    )
    pooling: str = hparam("mean", choices=["mean", "suite"], help="readout: the method's, or the suite's")
    probes = {"swap_start": {"swap_start": 0.0}}

    def build(self) -> None:
        width, features = self.node_width, self.info.node_features
        numeric = features.kind == "numeric"
        source = None if numeric else width
        self.front, self.bias_front = (nn.Identity() if numeric else make_front(features, width) for _ in range(2))
        self.backbone, self.bias_backbone = (self.make_backbone(in_dim=source) for _ in range(2))
        self.head, self.bias_head = (self.make_head(in_dim=2 * width) for _ in range(2))
        self.masks = Masker(features, width, self.masker)

    def branches(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The embeddings z_c and z_b, (B, d) each."""
        edge, node = self.masks(batch)
        x = self.front(batch.x) * node, self.bias_front(batch.x) * (1 - node)
        causal = self.backbone(batch, x=x[0], edge_weight=edge)
        bias = self.bias_backbone(batch, x=x[1], edge_weight=1 - edge)
        return self.read(causal, batch), self.read(bias, batch)

    def read(self, nodes: Tensor, batch: Batch) -> Tensor:
        """(B, d) graph embeddings from (N, d).

        Of sums, logits grow with the nodes until the bias branch is sure of one class for all graphs: the generalised
        cross-entropy has no gradient there, and W is then 0 or 1 by the label alone.
        """
        return pool(nodes, batch, "mean" if self.pooling == "mean" else self.readout)

    def predict_causal(self, z_c: Tensor, z_b: Tensor) -> Tensor:
        """(B, C) logits of the causal classifier, which does not train z_b."""
        return self.head(torch.cat([z_c, z_b.detach()], 1))

    def predict_bias(self, z_c: Tensor, z_b: Tensor) -> Tensor:
        """(B, C) logits of the bias classifier, which does not train z_c."""
        return self.bias_head(torch.cat([z_c.detach(), z_b], 1))

    def embed(self, batch: Batch) -> Tensor:
        return torch.cat(self.branches(batch), 1)

    def weight(self, term: str) -> float:
        early = term == "swap" and self.epoch < self.swap_start * self.info.epochs
        return 0.0 if early else super().weight(term)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        z_c, z_b = self.branches(batch)
        terms, importance = self.terms(self.predict_causal(z_c, z_b), self.predict_bias(z_c, z_b), batch)
        other = torch.randperm(len(z_b), generator=self.rng).to(z_b.device)
        return {**terms, "swap": self.swapped(batch, z_c, z_b, importance, other)}

    def swapped(self, batch: Batch, z_c: Tensor, z_b: Tensor, importance: Tensor, other: Tensor) -> Tensor:
        """L_G, in which graph i has the bias embedding of graph ``other[i]``."""
        z_b = z_b[other]
        causal = self.risk(self.predict_causal(z_c, z_b), batch)
        biased = amplified(self.predict_bias(z_c, z_b), batch.y[other], self.q, self.gce)
        return (importance * causal).mean() + self.weight("bias") * biased.mean()

    def importance(self, causal: Tensor, biased: Tensor) -> Tensor:
        if self.weights == "batch":
            causal, biased = (loss.mean().expand(len(loss)) for loss in (causal, biased))
        return super().importance(causal, biased)


class Masker(nn.Module):
    """Masks in (0, 1) from two message-passing layers: edges' from the embeddings of both ends, nodes' from their own.

    Args:
        features: of the nodes.
        width: d of the layers.
        layers: ``gcn``, with a ReLU between the two, or ``residual``.
    """

    def __init__(self, features: Features, width: int, layers: str) -> None:
        super().__init__()
        self.front = make_front(features, width)
        self.convs = nn.ModuleList((GCNConv if layers == "gcn" else Residual)(width, width) for _ in range(2))
        self.activation = torch.relu if layers == "gcn" else nn.Identity()
        self.edge, self.node = halving(2 * width), halving(width)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The masks of the edges (E,) and of the nodes (N, 1)."""
        h = self.front(batch.x)
        h = self.convs[1](self.activation(self.convs[0](h, batch)), batch)
        return self.edge(edge_ends(h, batch)).squeeze(1).sigmoid(), self.node(h).sigmoid()


class Residual(nn.Module):
    """h + relu(BatchNorm(W m + b)), with m the mean over a node's neighbours; zero where it has none."""

    def __init__(self, in_dim: int, out_dim: int) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(in_dim, out_dim), BatchNorm(out_dim)

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """(N, d) to (N, d)."""
        degree = neighbour_sum(h.new_ones(len(h), 1), batch).clamp(min=1)
        return h + self.norm(self.linear(neighbour_sum(h, batch) / degree)).relu()


def halving(width: int) -> nn.Sequential:
    """Three hidden layers, each half as wide as the one before, with BatchNorm and ReLU; then one output."""
    widths = [max(width >> level, 1) for level in range(4)]
    hidden = [part for a, b in itertools.pairwise(widths) for part in (nn.Linear(a, b), BatchNorm(b), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(widths[-1], 1))


@hookimpl
def bench_register(register: Register) -> None:
    register(DisC)
