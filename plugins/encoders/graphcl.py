"""GraphCL: contrast two random changes of a graph (You et al., NeurIPS 2020)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from harness import Batch, Encoder, Features, PackedGraphs, Register, UserError, hookimpl, hparam
from harness.graphs import drop_nodes, grow_subgraph, mask_rows, perturb_edges
from harness.nn import info_nce, pool, propagate
from plugins.encoders._common import GIN, mlp, train

_AUGMENTATIONS = {"node-drop": drop_nodes, "edge-perturb": perturb_edges, "mask": mask_rows, "subgraph": grow_subgraph}


class GraphCL(Encoder):
    """The vectors of two random changes of one graph should agree, and not with those of other graphs.

    Y. You et al., *Graph Contrastive Learning with Augmentations*, NeurIPS 2020: one GIN with sum readout, a
    projection of two layers, and NT-Xent (eq. 3) between two views of each batch. The two augmentations of a batch
    are drawn from ``augmentations`` and differ (with one name in the list both views use it). The embedding is the
    readout before the projection. EQuAD's ablation uses it in place of infomax.

    Subgraphs grow as far as the share asks, and removed edges are replaced by others within the graph. Dropped nodes
    leave the readout. Attributes are masked after the embedding of categorical features, as zero; on constant features
    a masked node still differs from the others.
    """

    name = "graphcl"
    augmentations: list[str] = hparam(
        list(_AUGMENTATIONS), choices=list(_AUGMENTATIONS), help="what the two augmentations of a batch are drawn from"
    )
    ratio: float = hparam(
        0.1,
        low=0.0,
        high=1.0,
        active={"augmentations": ["node-drop", "edge-perturb", "mask"]},
        help="share of nodes dropped or masked, and of edges moved",
    )
    subgraph_ratio: float = hparam(
        0.2, low=0.0, high=1.0, active={"augmentations": ["subgraph"]}, help="share of nodes that a subgraph keeps"
    )
    temperature: float = hparam(0.2, low=1e-3, help="temperature of the loss")
    exclude_positive: bool = hparam(False, help="leave the positive pair out of the denominator")
    one_direction: bool = hparam(False, help="contrast the first view with the second alone, and not back")
    dropout: float = hparam(0.0, low=0.0, high=1.0, help="dropout probability after each layer")

    def fit(self, graphs: PackedGraphs) -> Iterator[tuple[int, nn.Module]]:
        if not self.augmentations:
            raise UserError("encoder 'graphcl', hyperparameter 'augmentations': name at least one")
        module = Contrast(self.node_features, self.hidden, self.layers, self.dropout)
        yield from train(self, module, partial(self._loss, module), graphs)

    def _loss(self, module: "Contrast", batch: Batch) -> Tensor:
        batch = replace(batch, x=module.gin.front(batch.x))
        first, second = (module.projection(module.readout(self._changed(batch, name))) for name in self._draw())
        return info_nce(
            first,
            second,
            self.temperature,
            exclude_positive=self.exclude_positive,
            one_direction=self.one_direction,
        )

    def _draw(self) -> list[str]:
        """Two names from the pool, different where it has two."""
        order = torch.randperm(len(self.augmentations), generator=self.rng).tolist()
        return [self.augmentations[i] for i in (order[0], order[-1])]

    def _changed(self, batch: Batch, name: str) -> Batch:
        ratio = self.subgraph_ratio if name == "subgraph" else self.ratio
        return _AUGMENTATIONS[name](batch, ratio, self.rng)


class Contrast(nn.Module):
    """A GIN with sum readout, and the projection that only training uses; maps a batch to (B, hidden)."""

    def __init__(self, features: Features, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.gin = GIN(features, hidden, layers, dropout)
        self.projection = mlp(hidden, 2)

    def forward(self, batch: Batch) -> Tensor:
        return self.readout(replace(batch, x=self.gin.front(batch.x)))

    def readout(self, batch: Batch) -> Tensor:
        """(B, hidden) from a batch whose features have gone through the front."""
        return pool(self.gin(batch.x, partial(propagate, batch=batch)), batch)


@hookimpl
def bench_register(register: Register) -> None:
    register(GraphCL)
