"""DIR: rationales whose prediction withstands other graphs' shortcuts (Wu et al., ICLR 2022)."""

import torch
from torch import Tensor, nn

from harness import Backbone, Baseline, Batch, Register, hookimpl, hparam
from harness.nn import Subgraph, edge_ends, pool, subgraph, top_k_edges
from plugins.backbones.leconv import LEConvStack
from plugins.baselines._statistics import MIXED, second_pass, statistics_switch


class DIR(Baseline):
    """Each graph's causal part is paired with every non-causal part of the batch; the losses should be low and alike.

    A generator embeds nodes and scores edges, a = scorer([h_s; h_t]). The top share of each graph's edges is its
    rationale, the rest its shortcut; one network embeds both from h, messages weighted by sigmoid(a) and sigmoid(-a),
    to v_c and v_s. With phi_c the causal and phi_s the shortcut head, sg the stop of gradients, and
    l_j = mean_i l(y_i, phi_c(v_c,i) * sigmoid(sg phi_s(v_s,j))) the loss under the shortcut of graph j,

        L = mean_i l(y_i, phi_c(v_c,i)) + a_t (mean_j l_j + Var_j(B l_j)),    a_t = alpha * epoch^1.6,

    with epochs counted from 0 and Var unbiased, 0 for fewer than two shortcuts. phi_s alone learns from
    mean_i l(y_i, phi_s(sg v_s,i)), with an optimizer of its own. Graphs whose edges are all in the rationale have no
    shortcut and are left out of j and of that loss. Prediction is by phi_c alone.

    Y. Wu, X. Wang, A. Zhang, X. He and T.-S. Chua, *Discovering Invariant Rationales for Graph Neural Networks*, ICLR
    2022.
    """

    name = "dir"
    foreign_statistics = MIXED
    ratio: float = hparam(
        0.25,
        low=0.01,
        high=1.0,
        search=[0.25, 0.4, 0.5, 0.6, 0.7, 0.8],
        help="share of each graph's edges in the rationale",
    )
    alpha: float = hparam(
        0.01,
        low=0.0,
        search=[1e-4, 0.01, 0.1, 1.0, 10.0],
        weight_of="intervention",
        help="weight of the losses' mean and variance under interventions, before it grows as epoch^1.6",
    )
    scale_variance: bool = hparam(
        True, active={"alpha": "> 0"}, help="variance of the batch size times the losses, which grows with its square"
    )
    update: str = hparam(
        "batch", choices=["batch", "epoch"], help="one update per batch, or per epoch, by its batches' mean loss"
    )
    rounding: str = hparam("down", choices=["down", "up"], help="of the number of edges in the rationale, at least 1")
    generator: str = hparam("suite", choices=["suite", "leconv"], help="generator: the suite's network, or LEConv")
    shortcut_layer: bool = hparam(False, help="the shortcut's own loss passes one more linear layer")
    pooling: str = hparam("suite", choices=["suite", "mean"], help="readout: the suite's, or the paper's")
    statistics: str = statistics_switch()

    def build(self) -> None:
        self.generator_network = self.make_generator()
        width = self.generator_network.out_dim
        self.scorer = nn.Sequential(nn.Linear(2 * width, 4 * width), nn.ReLU(), nn.Linear(4 * width, 1))
        self.backbone = self.make_backbone(in_dim=width)
        self.head, self.shortcut_head = self.make_head(), self.make_head()
        outputs = self.info.task.outputs
        self.shortcut_last = nn.Linear(outputs, outputs) if self.shortcut_layer else nn.Identity()

    def make_generator(self) -> Backbone:
        """The network whose node embeddings score edges and feed the classifier."""
        if self.generator == "suite":
            return self.make_backbone(layers=2)
        network = LEConvStack(layers=2, hidden=self.node_width)
        network.build(self.info.node_features, self.info.edge_features)
        return network

    def split(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Node embeddings h (N, d), edge scores (E,), and which edges are the rationale's (E,)."""
        h = self.generator_network(batch)
        scores = self.scorer(edge_ends(h, batch)).squeeze(1)
        return h, scores, top_k_edges(scores, batch, self.ratio, rounding=self.rounding)

    def embed_part(self, part: Subgraph, h: Tensor, scores: Tensor) -> Tensor:
        """(B, d) embeddings of a part, its messages weighted by the sigmoid of its edges' scores."""
        nodes = self.backbone(part.batch, x=h[part.nodes], edge_weight=scores[part.edges].sigmoid())
        return pool(nodes, part.batch, "mean" if self.pooling == "mean" else self.readout)

    def embed(self, batch: Batch) -> Tensor:
        h, scores, kept = self.split(batch)
        return self.embed_part(subgraph(batch, kept), h, scores)

    def weight(self, term: str) -> float:
        if term in ("intervention", "variance"):
            return float(self.alpha * self.epoch**1.6)
        return super().weight(term)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        h, scores, kept = self.split(batch)
        causal = self.head(self.embed_part(subgraph(batch, kept), h, scores))
        part = subgraph(batch, ~kept, without_edges="empty")
        shortcut = self.shortcut_head(self.shortcut_embedding(part, h, scores))
        own = self.risk(self.shortcut_last(shortcut), batch) * part.present
        losses = self.interventions(causal, shortcut[part.present], batch)
        scale = batch.num_graphs if self.scale_variance else 1
        return {
            "erm": self.risk(causal, batch).mean(),
            "intervention": losses.mean() if len(losses) else causal.sum() * 0.0,
            "variance": (scale * losses).var() if len(losses) > 1 else causal.sum() * 0.0,
            "shortcut": own.sum() / part.present.sum().clamp(min=1),
        }

    def shortcut_embedding(self, part: Subgraph, h: Tensor, scores: Tensor) -> Tensor:
        """(B, d) v_s without gradient; zeros where a graph has no shortcut."""
        if part.edges.numel() == 0:
            return h.new_zeros(part.batch.num_graphs, self.backbone.out_dim)
        with torch.no_grad(), second_pass(self, self.backbone):
            return self.embed_part(part, h, -scores)

    def interventions(self, causal: Tensor, shortcut: Tensor, batch: Batch) -> Tensor:
        """(P,) l_j, the batch's mean loss under each shortcut.

        Args:
            causal: (B, C) logits of the rationales.
            shortcut: (P, C) logits of the shortcuts; they get no gradient.
            batch: gives the labels of the rationales.
        """
        count = len(shortcut)
        joint = causal.unsqueeze(0) * shortcut.detach().sigmoid().unsqueeze(1)
        labels = batch.y.repeat(count, *([1] * (batch.y.dim() - 1)))
        losses = self.losses(joint.flatten(0, 1), labels)
        return losses.reshape(count, len(causal)).mean(1)

    def optimizers(self) -> list[torch.optim.Optimizer]:
        """The shortcut head's, and that of all the rest."""
        own = [*self.shortcut_head.parameters(), *self.shortcut_last.parameters()]
        rest = [p for p in self.parameters() if all(p is not other for other in own)]
        return [self.make_optimizer(own), self.make_optimizer(rest)]

    def training_step(self, batch: Batch, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
        # One backward pass serves both optimizers: no loss of the one reaches a parameter of the other.
        if self.update == "batch":
            return super().training_step(batch, optimizers)
        terms = self.loss(batch)
        total = self.total(terms)
        if self.epoch_step == 0:
            self.zero_grad(set_to_none=True)
        (total / self.epoch_steps).backward()
        if self.epoch_step == self.epoch_steps - 1:
            for optimizer in optimizers:
                optimizer.step()
        return {**{name: term.detach() for name, term in terms.items()}, "loss": total.detach()}


@hookimpl
def bench_register(register: Register) -> None:
    register(DIR)
