"""The common parts of the self-supervised encoders: the graph network, the projection and the training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn

from harness import Batch, DataError, DivergedError, Encoder, Features, PackedGraphs, UserError
from harness.nn import GINConv, make_front


class GIN(nn.Module):
    """GIN in EQuAD's flavour, with the sum over neighbours handed in by the caller.

    The first convolution reads numeric features directly (categorical ones are embedded first); there is no
    activation and no normalisation between convolutions, and dropout after each.
    """

    def __init__(self, features: Features, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        numeric = features.kind == "numeric"
        self.front = nn.Identity() if numeric else make_front(features, hidden)
        widths = [features.sizes[0] if numeric else hidden, *[hidden] * (layers - 1)]
        self.convs: Iterable[Any] = nn.ModuleList(GINConv(width, hidden) for width in widths)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, aggregate: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """(N, hidden) from the front's output; ``aggregate`` gives what each node receives, sum_j w_ij ReLU(x_j)."""
        for conv in self.convs:
            x = self.dropout(conv.mlp(torch.addcmul(aggregate(x), x, 1 + conv.eps)))
        return x


def mlp(dim: int, layers: int) -> nn.Sequential:
    """``layers`` linear maps of one width with a ReLU between."""
    parts = [part for _ in range(layers) for part in (nn.Linear(dim, dim), nn.ReLU())]
    return nn.Sequential(*parts[:-1])


def train(
    encoder: Encoder, module: nn.Module, loss: Callable[[Batch], torch.Tensor], graphs: PackedGraphs
) -> Iterator[tuple[int, nn.Module]]:
    """Train ``module`` with Adam and yield it after each snapshot's epoch.

    The order of the graphs is drawn from ``encoder.rng`` in each epoch. A last batch of a single graph has no
    negatives and is left out.
    """
    if len(graphs) < 2:
        raise DataError(f"encoder '{encoder.name}' contrasts graphs with each other and needs two; found {len(graphs)}")
    if not encoder.snapshots:
        raise UserError(f"encoder '{encoder.name}', hyperparameter 'snapshots': name at least one epoch")
    module.to(graphs.x.device)
    optimizer = torch.optim.Adam(module.parameters(), lr=encoder.lr, fused=True)
    for epoch in range(1, max(encoder.snapshots) + 1):
        module.train()
        total = torch.zeros((), device=graphs.x.device)
        order = torch.randperm(len(graphs), generator=encoder.rng)
        for batch in graphs.batches(encoder.batch_size, order, at_least=2):
            if batch.num_graphs < 2:
                continue
            value = loss(batch)
            optimizer.zero_grad(set_to_none=True)
            value.backward()
            optimizer.step()
            total += value.detach()
        if not torch.isfinite(total):
            raise DivergedError(f"encoder '{encoder.name}': the loss of epoch {epoch} is not finite")
        if epoch in encoder.snapshots:
            yield epoch, module
