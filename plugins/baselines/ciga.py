"""CIGA: predict from a learned subgraph, contrasted within classes (Chen et al., NeurIPS 2022)."""

import torch
from torch import Tensor, nn

from harness import (
    Backbone,
    Baseline,
    Batch,
    Subgraph,
    hookimpl,
    hparam,
    pool,
    subgraph,
    supervised_contrastive,
    top_k_edges,
)


class CIGA(Baseline):
    """A featurizer scores edges; a classifier sees only the top share of each graph, G_c.

        L = mean_i CE(y_i, f(G_c)) + contrast * L_con + hinge * L_hinge

    L_con (v1 and v2) is the supervised contrastive loss of the G_c embeddings. L_hinge (v2) is the cross-entropy of
    the left-over G_s, averaged over the graphs on which it is worse than that of G_c. Messages are weighted by
    sigmoid(score) on G_c and sigmoid(-score) on G_s: the only way by which the scorer learns, and a plain argument
    here (the public code's masks have no effect under current PyG).

    Deviations from the public code: the gradient of L_hinge reaches G_s (``detach_spurious: true`` cuts it, as the
    code does with ``s_rep: rep``); the top edges are found by exact sorting; a graph without kept edges keeps its
    nodes. The classifier's head is the suite's, as for every other row. Citation: Chen et al., *Learning
    Causally Invariant Representations for Out-of-Distribution Generalization on Graphs*, NeurIPS 2022.
    """

    name = "ciga"
    tasks = frozenset({"binary", "multiclass"})
    variant: str = hparam("v1", choices=["v1", "v2"], help="v2 adds the hinge term on the left-over subgraph")
    ratio: float = hparam(
        0.25, low=0.01, high=1.0, search=[0.25, 0.4, 0.6, 0.8], help="share of each graph's edges in G_c"
    )
    contrast: float = hparam(
        4.0,
        low=0.0,
        search=[0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0],
        weight_of="contrast",
        help="alpha: weight of the contrastive term",
    )
    hinge: float = hparam(
        1.0,
        low=0.0,
        search=[0.5, 1.0, 2.0],
        weight_of="hinge",
        active={"variant": ["v2"]},
        help="beta: weight of the hinge term",
    )
    c_in: str = hparam("raw", choices=["raw", "feat"], help="the classifier reads node features, or featurizer outputs")
    c_rep: str = hparam(
        "rep",
        choices=["rep", "feat"],
        help="contrast the classifier's embedding of G_c, or summed featurizer outputs",
    )
    s_rep: str = hparam(
        "rep",
        choices=["rep", "conv"],
        active={"variant": ["v2"]},
        help="G_s is embedded by the classifier, or by a one-layer network of its own",
    )
    detach_spurious: bool = hparam(
        False, active={"variant": ["v2"]}, help="the hinge term trains only the head of G_s, as in the public code"
    )

    def build(self) -> None:
        self.featurizer = self.make_backbone()
        width = self.featurizer.out_dim
        source = width if self.c_in == "feat" else None
        self.backbone = self.make_backbone(in_dim=source)
        self.head = self.make_head()
        self.scorer = nn.Sequential(nn.Linear(2 * width, 4 * width), nn.ReLU(), nn.Linear(4 * width, 1))
        if self.variant == "v2":
            self.build_spurious(source)

    def build_spurious(self, source: int | None) -> None:
        """The branch of G_s: its network if it has one, and its head with the extra linear layer."""
        d, outputs = self.backbone.out_dim, self.info.task.outputs
        if self.s_rep == "conv":
            self.spurious_backbone = self.make_backbone(in_dim=source, layers=1)
        self.spurious_head = nn.Sequential(
            nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, outputs), nn.Linear(outputs, outputs)
        )

    def split(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Featurizer outputs h (N, d), edge scores (E,), and which edges are G_c's (E,)."""
        h = self.featurizer(batch)
        source, target = batch.edge_index
        scores = self.scorer(torch.cat([h[source], h[target]], 1)).squeeze(1)
        return h, scores, top_k_edges(scores, batch, self.ratio)

    def embed_part(self, network: Backbone, part: Subgraph, h: Tensor, scores: Tensor) -> Tensor:
        """(B, d) embeddings of a subgraph, its messages weighted by the sigmoid of its edges' scores."""
        x = h[part.nodes] if self.c_in == "feat" else None
        return self.pool(network(part.batch, x=x, edge_weight=scores[part.edges].sigmoid()), part.batch)

    def embed(self, batch: Batch) -> Tensor:
        h, scores, kept = self.split(batch)
        return self.embed_part(self.backbone, subgraph(batch, kept), h, scores)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        h, scores, kept = self.split(batch)
        causal = subgraph(batch, kept)
        embedding = self.embed_part(self.backbone, causal, h, scores)
        contrasted = embedding if self.c_rep == "rep" else pool(h[causal.nodes], causal.batch, "sum")
        risk = self.risk(self.head(embedding), batch)
        terms = {"erm": risk.mean(), "contrast": supervised_contrastive(contrasted, batch.y)}
        if self.variant == "v2":
            spurious = subgraph(batch, ~kept, without_edges="empty")
            terms["hinge"] = hinge(self.spurious_risk(batch, spurious, h, scores), risk, spurious.present)
        return terms

    def spurious_risk(self, batch: Batch, part: Subgraph, h: Tensor, scores: Tensor) -> Tensor:
        """(B,) cross-entropy of the predictions from G_s."""
        if part.edges.numel() == 0:
            return self.spurious_head(h.new_zeros(batch.num_graphs, self.backbone.out_dim)).sum(1) * 0.0
        network = self.spurious_backbone if self.s_rep == "conv" else self.backbone
        embedding = self.embed_part(network, part, h, -scores)
        return self.risk(self.spurious_head(embedding.detach() if self.detach_spurious else embedding), batch)


def hinge(spurious_risk: Tensor, risk: Tensor, present: Tensor) -> Tensor:
    """Mean of G_s's losses (B,) over the graphs that have a G_s and lose more by it than by G_c; zero if none."""
    chosen = (spurious_risk > risk).detach() & present
    return (spurious_risk * chosen).sum() / (chosen.sum() + 1e-6)


@hookimpl
def bench_register(register):
    register(CIGA)
