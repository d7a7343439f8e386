"""The stack of GIN and GCN: a front where one is needed, then convolutions with layers in between."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness import Backbone, Batch, Features, hparam
from harness.nn import BatchNorm, make_front


class Stack(Backbone):
    """Convolutions one after the other; the node embeddings are those of the last.

    A subclass names its convolution and says whether a ReLU follows each but the last.
    """

    flavour: str = hparam("equad", choices=["equad", "ogb"], help="ogb: as OGB's baselines, linear front and BatchNorm")

    @property
    def conv(self) -> type[nn.Module]:
        """The convolution."""
        raise NotImplementedError

    @property
    def activates(self) -> bool:
        return True

    def build(self, node_features: Features, edge_features: Features) -> None:
        raw = self.flavour == "equad" and node_features.kind == "numeric"
        width = node_features.sizes[0] if raw else self.hidden
        self.front = nn.Identity() if raw else make_front(node_features, self.hidden)
        edges = edge_features if self.edge_features else None
        widths = [width] + [self.hidden] * (self.layers - 1)
        self.convs = nn.ModuleList(self.conv(width, self.hidden, edges) for width in widths)
        self.norms = nn.ModuleList(BatchNorm(self.hidden) for _ in widths if self.flavour == "ogb")

    def forward(self, batch: Batch, x: Tensor | None = None, edge_weight: Tensor | None = None) -> Tensor:
        h = self.front(batch.x if x is None else x)
        for layer, conv in enumerate(self.convs):
            h = conv(h, batch, edge_weight)
            if self.norms:
                h = self.norms[layer](h)
            if self.activates and layer < self.layers - 1:
                h = torch.relu(h)
            if self.dropout:
                h = F.dropout(h, self.dropout, self.training)
        return h
