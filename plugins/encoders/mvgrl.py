"""MVGRL: contrast two structural views of a graph (Hassani and Khasahmadi, ICML 2020)."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from harness import Batch, Encoder, Features, PackedGraphs, Register, hookimpl, hparam
from harness.graphs import DiffusedGraphs, Diffusion, batch_blocks, by_size
from harness.nn import block_sum, local_global_jsd, padded_slots, pool, propagate
from plugins.encoders._common import GIN, mlp, train

_EMBED = 2**19  # most numbers in one block tensor while embedding


class MVGRL(Encoder):
    """Node vectors of one view should agree with their graph's vector in the other, and not with other graphs'.

    K. Hassani and A. H. Khasahmadi, *Contrastive Multi-View Representation Learning on Graphs*, ICML 2020, eq. 5, in
    the graph-level form that EQuAD uses (Yao et al., *Empowering Graph Invariance Learning with Deep Spurious
    Infomax*, ICML 2024, section 4.1). Two GINs with weights of their own, one per view, give node vectors h and sums
    g; two residual MLPs, shared by the views, project nodes and graphs. The loss is half the sum of the two
    Jensen-Shannon contrasts J(g1, h2) and J(g2, h1); the embedding is the sum of the projected graph vectors.
    """

    name = "mvgrl"
    views: str = hparam(
        "adjacency-ppr",
        choices=["adjacency-ppr", "adjacency-heat", "ppr-heat"],
        help="the two views: the graph itself, personalised PageRank, heat kernel",
    )
    alpha: float = hparam(
        0.2, low=1e-6, high=1.0, active={"views": ["adjacency-ppr", "ppr-heat"]}, help="restart probability of PageRank"
    )
    t: float = hparam(5.0, low=0.0, active={"views": ["adjacency-heat", "ppr-heat"]}, help="time of the heat kernel")
    heat_transition: str = hparam(
        "symmetric",
        choices=["symmetric", "column"],
        active={"views": ["adjacency-heat", "ppr-heat"]},
        help="normalisation inside the heat kernel",
    )
    eps: float = hparam(1e-4, low=0.0, help="entries of the diffusion below this are dropped")
    diffusion_weights: bool = hparam(True, help="weigh messages by the diffusion; false keeps only its pattern")
    dropout: float = hparam(0.0, low=0.0, high=1.0, help="dropout probability after each layer")

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self._diffused: WeakKeyDictionary[PackedGraphs, list[DiffusedGraphs | None]] = WeakKeyDictionary()

    def fit(self, graphs: PackedGraphs) -> Iterator[tuple[int, nn.Module]]:
        module = TwoViews(self.node_features, self.hidden, self.layers, self.dropout, self.recipes())
        yield from train(self, module, lambda batch: module.loss(self._with_blocks(batch, graphs)), graphs)

    def embed(self, module: nn.Module, graphs: PackedGraphs) -> Tensor:
        module.eval()
        out = torch.empty(len(graphs), self.hidden, device=graphs.x.device)
        with torch.no_grad():
            for ids in by_size(graphs.node_ptr.diff(), _EMBED):
                out[ids] = module(self._with_blocks(graphs.batch(ids), graphs))
        return out

    def recipes(self) -> list[Diffusion | None]:
        """The diffusion of each view, None for the graph itself."""
        shared: dict[str, Any] = {"eps": self.eps, "weighted": self.diffusion_weights}
        heat: dict[str, Any] = {"t": self.t, "transition": self.heat_transition, **shared}
        known = {
            "adjacency": None,
            "ppr": Diffusion("ppr", alpha=self.alpha, **shared),
            "heat": Diffusion("heat", **heat),
        }
        return [known[view] for view in self.views.split("-")]

    def _with_blocks(self, batch: Batch, graphs: PackedGraphs) -> Batch:
        """The batch with its graphs' diffusions, which are computed at the first call for these graphs."""
        if graphs not in self._diffused:
            self._diffused[graphs] = [
                None if recipe is None else DiffusedGraphs(graphs, recipe) for recipe in self.recipes()
            ]
        batch.cache["blocks"] = [None if kept is None else kept.blocks(batch.index) for kept in self._diffused[graphs]]
        return batch


class TwoViews(nn.Module):
    """Two GINs and the shared projections; maps a batch to (B, hidden) graph embeddings."""

    def __init__(
        self, features: Features, hidden: int, layers: int, dropout: float, recipes: list[Diffusion | None]
    ) -> None:
        super().__init__()
        self.recipes = recipes
        self.encoders: Iterable[Any] = nn.ModuleList(GIN(features, hidden, layers, dropout) for _ in recipes)
        self.node_projection = Residual(hidden)
        self.graph_projection = Residual(hidden)

    def forward(self, batch: Batch) -> Tensor:
        return torch.stack(self._graphs(batch, self.nodes(batch))).sum(0)

    def loss(self, batch: Batch) -> Tensor:
        """Half the sum of the two cross-view contrasts: a live scalar."""
        nodes = self.nodes(batch)
        graph1, graph2 = self._graphs(batch, nodes)
        node1, node2 = self.node_projection(torch.cat(nodes)).chunk(2)  # both views in one pass, for speed
        owner = batch.batch
        return 0.5 * (local_global_jsd(graph1, node2, owner) + local_global_jsd(graph2, node1, owner))

    def _graphs(self, batch: Batch, nodes: list[Tensor]) -> tuple[Tensor, ...]:
        """(B, hidden) projected graph vectors of each view."""
        return self.graph_projection(torch.cat([pool(part, batch) for part in nodes])).chunk(2)

    def nodes(self, batch: Batch) -> list[Tensor]:
        """(N, hidden) node vectors of each view."""
        blocks = batch.cache.get("blocks") or [
            None if recipe is None else batch_blocks(batch, recipe) for recipe in self.recipes
        ]
        pairs = zip(self.encoders, blocks, strict=True)
        return [gin(gin.front(batch.x), _aggregate(batch, operator)) for gin, operator in pairs]


class Residual(nn.Module):
    """Three times (Linear, ReLU), plus one Linear beside them."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.deep = nn.Sequential(mlp(dim, 3), nn.ReLU())
        self.shortcut = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.deep(x) + self.shortcut(x)


def _aggregate(batch: Batch, operator: Tensor | None) -> Callable[[Tensor], Tensor]:
    if operator is None:
        return partial(propagate, batch=batch)
    slots = padded_slots(batch, operator.size(1))
    return lambda x: block_sum(x.relu(), operator, slots)


@hookimpl
def bench_register(register: Register) -> None:
    register(MVGRL)
