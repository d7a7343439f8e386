"""Common parts of CIGA and GALA: a featurizer scores edges, a classifier's network reads the part that they select."""

import torch
from torch import Tensor, nn

from harness import Backbone, Baseline, Batch, hparam
from harness.nn import EdgeScorer, Subgraph, edge_ends, pool, subgraph, top_k_edges


class SubgraphLearner(Baseline):
    """Prediction from G_c, the edges that a featurizer scores highest, by a second network.

    Messages are weighted by sigmoid(score) on G_c and by sigmoid(-score) on G_s, which is what is left of the graph.
    With ``split: soft`` both hold all edges, and the weights alone tell them apart. The weights are the only way by
    which the scorer learns: the split itself has no gradient.
    """

    tasks = frozenset({"binary", "multiclass"})
    split: str = hparam(
        "hard", choices=["hard", "soft"], help="G_c holds the top share of the edges, or all edges, only weighted"
    )
    ratio: float = hparam(
        0.25,
        low=0.01,
        high=1.0,
        search=[0.25, 0.4, 0.6, 0.8],
        active={"split": ["hard"]},
        help="share of each graph's edges in G_c",
    )
    scorer: str = hparam(
        "mlp", choices=["mlp", "normalised"], help="edge scorer: one hidden layer, or GSAT's two, standardised by graph"
    )
    c_in: str = hparam("raw", choices=["raw", "feat"], help="the classifier reads node features, or featurizer outputs")
    c_rep: str = hparam(
        "rep",
        choices=["rep", "feat"],
        help="contrast the classifier's embedding of G_c, or summed featurizer outputs",
    )
    featurizer_layers: int | None = hparam(None, low=1, help="layers of the featurizer; none: the suite's")

    def build(self) -> None:
        depth = {} if self.featurizer_layers is None else {"layers": self.featurizer_layers}
        self.featurizer = self.make_backbone(**depth)
        width = self.featurizer.out_dim
        self.backbone = self.make_backbone(in_dim=self.classifier_input)
        self.head = self.make_head()
        self.edge_scorer = (
            EdgeScorer(width, dropout=self.featurizer.dropout, rng=self.rng)
            if self.scorer == "normalised"
            else PairScorer(width)
        )

    @property
    def classifier_input(self) -> int | None:
        """Width of the featurizer outputs where the classifier reads them; None where it reads node features."""
        return self.featurizer.out_dim if self.c_in == "feat" else None

    def score(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Featurizer outputs h (N, d) and edge scores (E,)."""
        h = self.featurizer(batch)
        return h, self.edge_scorer(h, batch)

    def causal(self, batch: Batch, scores: Tensor) -> Subgraph:
        """G_c. In a hard split a graph without edges keeps its nodes."""
        return whole(batch) if self.split == "soft" else subgraph(batch, top_k_edges(scores, batch, self.ratio))

    def left_over(self, batch: Batch, causal: Subgraph) -> Subgraph:
        """G_s. In a hard split a graph none of whose edges is left has no nodes."""
        if self.split == "soft":
            return causal
        left = torch.ones(batch.num_edges, dtype=torch.bool, device=batch.x.device)
        left[causal.edges] = False
        return subgraph(batch, left, without_edges="empty")

    def embed_part(self, network: Backbone, part: Subgraph, h: Tensor, scores: Tensor) -> Tensor:
        """(B, d) embeddings of a part, its messages weighted by the sigmoid of its edges' scores."""
        x = h[part.nodes] if self.c_in == "feat" else None
        return self.pool(network(part.batch, x=x, edge_weight=scores[part.edges].sigmoid()), part.batch)

    def read(self, batch: Batch) -> tuple[Tensor, Tensor, Subgraph, Tensor]:
        """Featurizer outputs h (N, d), edge scores (E,), G_c and its embeddings (B, d)."""
        h, scores = self.score(batch)
        causal = self.causal(batch, scores)
        return h, scores, causal, self.embed_part(self.backbone, causal, h, scores)

    def embed(self, batch: Batch) -> Tensor:
        return self.read(batch)[-1]

    def contrasted(self, part: Subgraph, embedding: Tensor, h: Tensor) -> Tensor:
        """(B, d) what the contrastive term compares."""
        return embedding if self.c_rep == "rep" else pool(h[part.nodes], part.batch, "sum")


class PairScorer(nn.Module):
    """One score per edge from the embeddings of its two ends: an MLP [2d, 4d, 1]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(2 * width, 4 * width), nn.ReLU(), nn.Linear(4 * width, 1))

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """(E,) scores from (N, d) node embeddings."""
        return self.mlp(edge_ends(h, batch)).squeeze(1)


def whole(batch: Batch) -> Subgraph:
    """All of a batch as a part of it."""
    edges = torch.arange(batch.num_edges, device=batch.x.device)
    present = torch.zeros(batch.num_graphs, dtype=torch.bool, device=batch.x.device)
    present[batch.batch[batch.edge_index[0]]] = True
    return Subgraph(batch, torch.arange(batch.num_nodes, device=batch.x.device), edges, present)
