"""CIGA: predict from a learned subgraph, contrasted within classes (Chen et al., NeurIPS 2022)."""

from torch import Tensor, nn

from harness import Batch, Register, hookimpl, hparam
from harness.nn import Subgraph, supervised_contrastive
from plugins.baselines._statistics import MIXED, second_pass, statistics_switch
from plugins.baselines._subgraphs import SubgraphLearner

V2 = {"variant": ["v2"]}


class CIGA(SubgraphLearner):
    """A featurizer scores edges; a classifier sees only the top share of each graph, G_c.

        L = mean_i CE(y_i, f(G_c)) + contrast * L_con + hinge * L_hinge

    L_con is the supervised contrastive loss of the G_c embeddings. L_hinge (v2) is the cross-entropy of the left-over
    G_s, averaged over the graphs on which it is worse than that of G_c. Chen et al., *Learning Causally Invariant
    Representations for Out-of-Distribution Generalization on Graphs*, NeurIPS 2022.
    """

    name = "ciga"
    foreign_statistics = MIXED
    variant: str = hparam("v1", choices=["v1", "v2"], help="v2 adds the hinge term on the left-over subgraph")
    contrast: float = hparam(
        4.0, low=0.0, search=[0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0], weight_of="contrast", help="alpha: weight of L_con"
    )
    hinge: float = hparam(1.0, low=0.0, search=[0.5, 1.0, 2.0], weight_of="hinge", active=V2, help="weight of L_hinge")
    s_rep: str = hparam(
        "rep", choices=["rep", "conv"], active=V2, help="G_s is embedded by the classifier, or by a one-layer network"
    )
    detach_spurious: bool = hparam(False, active=V2, help="L_hinge trains only the head of G_s, as in the public code")
    statistics: str = statistics_switch({**V2, "s_rep": ["rep"]})

    def build(self) -> None:
        super().build()
        if self.variant == "v1":
            return
        d, outputs = self.backbone.out_dim, self.info.task.outputs
        if self.s_rep == "conv":
            self.spurious_backbone = self.make_backbone(in_dim=self.classifier_input, layers=1)
        self.spurious_head = nn.Sequential(
            nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, outputs), nn.Linear(outputs, outputs)
        )

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        h, scores, causal, embedding = self.read(batch)
        risk = self.risk(self.head(embedding), batch)
        contrasted = self.contrasted(causal, embedding, h)
        terms = {"erm": risk.mean(), "contrast": supervised_contrastive(contrasted, batch.y)}
        if self.variant == "v2":
            spurious = self.left_over(batch, causal)
            terms["hinge"] = hinge(self.spurious_risk(batch, spurious, h, scores), risk, spurious.present)
        return terms

    def spurious_risk(self, batch: Batch, part: Subgraph, h: Tensor, scores: Tensor) -> Tensor:
        """(B,) cross-entropy of the predictions from G_s."""
        if part.edges.numel() == 0:
            return self.spurious_head(h.new_zeros(batch.num_graphs, self.backbone.out_dim)).sum(1) * 0.0
        network = self.spurious_backbone if self.s_rep == "conv" else self.backbone
        with second_pass(self, self.backbone):
            embedding = self.embed_part(network, part, h, -scores)
        return self.risk(self.spurious_head(embedding.detach() if self.detach_spurious else embedding), batch)


def hinge(spurious_risk: Tensor, risk: Tensor, present: Tensor) -> Tensor:
    """Mean of G_s's losses (B,) over the graphs that have a G_s and lose more by it than by G_c; zero if none."""
    chosen = (spurious_risk > risk).detach() & present
    return (spurious_risk * chosen).sum() / (chosen.sum() + 1e-6)


@hookimpl
def bench_register(register: Register) -> None:
    register(CIGA)
