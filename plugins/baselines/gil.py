"""GIL: invariant subgraphs, and environments clustered from what is left of them (Li et al., NeurIPS 2022)."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from harness import Baseline, Batch, PackedGraphs, Register, hookimpl, hparam
from harness.nn import (
    EdgeScorer,
    average_directions,
    environment_mean,
    evaluating,
    instance_norm,
    kmeans,
    labelled_environments,
    subgraph,
    top_k_edges,
)


class GIL(Baseline):
    """A mask network splits each graph; k-means on the variant parts infers environments for the invariant parts.

    The edge (u, v) scores <Z_u, Z_v> by the mask network's embeddings; the top share of each graph's edges is its
    invariant part, from which alone the prediction is made. With R_e the risk of environment e in the batch,

        L = mean_e R_e + penalty * 1/P sum_e ||grad R_e - mean_e' grad R_e'||^2

    over the P environments with two graphs or more; the penalty is IGA's (Koyama and Yamaguchi, arXiv:2008.01883),
    differentiated twice, and zero for P < 2. The mask is hard on the way forward and sigmoid(score) on the way back,
    for kept and dropped edges alike; BatchNorm sees the nodes of the invariant parts alone. With ``split: soft`` both
    parts hold all edges, weighted by sigmoid(score) and sigmoid(-score). Variant parts are embedded by the
    classifier's network in evaluation mode without gradient, nodes without variant edges left out.
    Citation: Li, Zhang, Wang and Zhu, *Learning Invariant Graph Representations for Out-of-Distribution
    Generalization*, NeurIPS 2022.
    """

    name = "gil"
    penalty: float = hparam(
        1e-3, low=0.0, search=[1e-5, 1e-3, 1e-1], weight_of="variance", help="weight of the gradients' variance"
    )
    split: str = hparam(
        "hard",
        choices=["hard", "soft"],
        help="the invariant part: the top share of the edges, or all edges, only weighted",
    )
    ratio: float = hparam(
        0.25,
        low=0.01,
        high=1.0,
        search=[0.25, 0.4, 0.6, 0.8],
        active={"split": ["hard"]},
        help="share of each graph's edges that are invariant",
    )
    clusters: int = hparam(3, low=2, search=[2, 3, 4], help="number of environments to infer")
    cluster_per: str = hparam("epoch", choices=["epoch", "batch"], help="cluster all training graphs, or each batch")
    unit_length: bool = hparam(True, help="cluster embeddings of length one")
    penalty_params: str = hparam(
        "head", choices=["head", "all"], active={"penalty": "> 0"}, help="whose gradients are compared"
    )
    ramp_epochs: int = hparam(
        10, low=0, active={"penalty": "> 0"}, help="epochs over which the penalty's weight grows linearly to its value"
    )
    erm_term: str = hparam(
        "environments", choices=["environments", "samples"], help="risk: mean over environments present, or over graphs"
    )
    scorer: str = hparam("inner", choices=["inner", "mlp"], help="edge scores: inner products, or an MLP of both ends")
    standardise: bool = hparam(True, help="standardise a graph's scores before the sigmoid, lest it saturate")

    def build(self) -> None:
        super().build()
        self.masker = self.make_backbone()
        self.edge_scorer = EdgeScorer(self.masker.out_dim) if self.scorer == "mlp" else None
        self.found: Tensor | None = None

    def weight(self, term: str) -> float:
        grown = min(1.0, (self.epoch + 1) / self.ramp_epochs) if self.ramp_epochs and term == "variance" else 1.0
        return grown * super().weight(term)

    def scores(self, batch: Batch) -> Tensor:
        """(E,) scores of the edges, the same for an edge and its reverse."""
        h, (source, target) = self.masker(batch), batch.edge_index
        if self.edge_scorer is None:
            scores = (h.index_select(0, source) * h.index_select(0, target)).sum(1)
        else:
            scores = average_directions(self.edge_scorer(h, batch), batch)
        if not self.standardise:
            return scores
        return instance_norm(scores.unsqueeze(1), batch.batch[source], batch.num_graphs).squeeze(1)

    def cut(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the invariant edges (E,) as truth values, and as numbers with the gradient of the soft mask (E,)."""
        scores = self.scores(batch)
        kept, soft = top_k_edges(scores, batch, self.ratio), scores.sigmoid()
        return kept, kept.to(soft.dtype) + (soft - soft.detach())

    def embed(self, batch: Batch) -> Tensor:
        if self.split == "soft":
            return self.pool(self.backbone(batch, edge_weight=self.scores(batch).sigmoid()), batch)
        kept, mask = self.cut(batch)
        part = subgraph(batch, kept)
        # On all edges, so that dropped ones have a gradient too; the nodes of the invariant part see nothing of them.
        with normalised_by({batch.num_edges: part.edges, batch.num_nodes: part.nodes}, self.backbone):
            nodes = self.backbone(batch, edge_weight=mask)
        return self.pool(nodes[part.nodes], part.batch)

    def variant(self, batch: Batch) -> Tensor:
        """(B, d) embeddings of the variant parts; zeros where there is none. In evaluation mode, without gradient."""
        with evaluating(self), torch.no_grad():
            if self.split == "soft":
                return self.pool(self.backbone(batch, edge_weight=(-self.scores(batch)).sigmoid()), batch)
            part = subgraph(batch, ~self.cut(batch)[0], without_edges="empty")
            if part.edges.numel() == 0:
                return torch.zeros(batch.num_graphs, self.backbone.out_dim, device=batch.x.device)
            return self.pool(self.backbone(part.batch), part.batch)

    def cluster(self, rows: Tensor) -> Tensor:
        """(n,) environments of (n, d) variant embeddings."""
        rows = nn.functional.normalize(rows, dim=1) if self.unit_length else rows
        return kmeans(rows, self.clusters, generator=self.rng).ids

    def on_epoch_start(self, train: PackedGraphs) -> None:
        if self.cluster_per == "epoch":
            self.found = self.cluster(torch.cat([self.variant(batch) for batch in train.batches(256)]))

    def environments(self, batch: Batch) -> Tensor:
        """(B,) inferred ids, -1 for graphs without any label: by epoch once an epoch has begun, else by batch."""
        known = self.found if self.cluster_per == "epoch" else None
        env = self.cluster(self.variant(batch)) if known is None else known[batch.index]
        return labelled_environments(env, batch.y, self.info.task)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        risk = self.risk(self(batch), batch)
        risks = environment_mean(risk, self.environments(batch), at_least=2, share=self.label_share(batch.y))
        average = self.erm_term == "environments" and len(risks) > 0
        compared = self.head if self.penalty_params == "head" else self
        variance = gradient_variance(risks, compared.parameters())
        return {"erm": risks.mean() if average else risk.mean(), "variance": variance}


@contextmanager
def normalised_by(rows: Mapping[int, Tensor], network: nn.Module) -> Iterator[None]:
    """In training, BatchNorm takes its statistics, running ones too, from these rows alone, and normalises all by them.

    Args:
        rows: number of rows (N, d) that a norm is given -> positions of those that count; all do of other numbers.
        network: holds the norms.
    """
    norms = [part for part in network.modules() if isinstance(part, nn.BatchNorm1d) and part.training]
    whole: dict[nn.Module, Tensor] = {}

    def choose(norm: nn.Module, given: tuple[Tensor]) -> tuple[Tensor]:
        if len(given[0]) not in rows:
            return given
        whole[norm] = given[0]
        return (given[0].index_select(0, rows[len(given[0])]),)

    def spread(norm: nn.BatchNorm1d, chosen: tuple[Tensor], normalised: Tensor) -> Tensor:
        if norm not in whole:
            return normalised
        variance, mean = torch.var_mean(chosen[0], 0, correction=0)
        given = whole.pop(norm)
        others = (given - mean) * (variance + norm.eps).rsqrt() * norm.weight + norm.bias
        return others.index_copy(0, rows[len(given)], normalised)

    hooks = [
        hook for norm in norms for hook in (norm.register_forward_pre_hook(choose), norm.register_forward_hook(spread))
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def gradient_variance(risks: Tensor, parameters: Iterable[nn.Parameter]) -> Tensor:
    """Trace of the variance of the risks' gradients: 1/P sum_e ||g_e - mean g||^2, to be differentiated again.

    Args:
        risks: (P,) live risks; fewer than two give a live zero.
        parameters: with respect to which; those that a risk does not reach count as zero.
    """
    if len(risks) < 2:
        return risks.sum() * 0.0
    wanted = [parameter for parameter in parameters if parameter.requires_grad]
    found = [
        torch.autograd.grad(risk, wanted, create_graph=True, allow_unused=True, materialize_grads=True)
        for risk in risks
    ]
    gradients = torch.stack([torch.cat([part.flatten() for part in parts]) for parts in found])
    return (gradients - gradients.mean(0)).square().sum(1).mean()


@hookimpl
def bench_register(register: Register) -> None:
    register(GIL)
