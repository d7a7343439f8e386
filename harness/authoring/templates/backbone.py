"""GraphSAGE with the mean over neighbours (Hamilton et al., NeurIPS 2017)."""

import torch
import torch.nn.functional as F
from harness import Backbone, Batch, Features, Register, hookimpl, hparam
from harness.nn import make_front, neighbour_sum
from torch import Tensor, nn


class NewComponent(Backbone):
    """Each layer: ReLU of a linear map of a node's row and its neighbours' mean row.

    A backbone maps a batch to node embeddings. `layers`, `hidden`, `dropout` and
    `edge_features` are inherited. Say in this docstring what a layer computes, and the
    paper it comes from.
    """

    name = "new-component"
    unused = frozenset({"edge_features"})  # inherited, and without effect here

    normalize: bool = hparam(False, help="scale each node's row to length one")

    def build(self, node_features: Features, edge_features: Features) -> None:
        """Create the layers; the harness has set the seed."""
        del edge_features
        self.front = make_front(node_features, self.hidden)
        sizes = (2 * self.hidden, self.hidden)
        self.maps = nn.ModuleList(nn.Linear(*sizes) for _ in range(self.layers))

    def forward(
        self,
        batch: Batch,
        x: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """(nodes, hidden). `x` replaces the features, `edge_weight` weighs messages."""
        h: Tensor = self.front(batch.x if x is None else x)
        ones = h.new_ones(batch.num_nodes, 1)
        total = neighbour_sum(ones, batch, edge_weight).clamp(min=1e-9)
        for linear in self.maps:
            mean = neighbour_sum(h, batch, edge_weight) / total
            h = torch.relu(linear(torch.cat([h, mean], dim=1)))
            h = F.dropout(h, self.dropout, self.training)
            h = F.normalize(h, dim=1) if self.normalize else h
        return h


@hookimpl
def bench_register(register: Register) -> None:
    register(NewComponent)
