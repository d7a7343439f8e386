"""Whether a function of a batch treats each graph by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from harness.graphs import Batch, PackedGraphs

SLACK = 1e-4
"""Of the largest absolute value: sums of float32 in another order."""


def depends_on_companions(function: Callable[[Batch], Tensor], graphs: PackedGraphs, what: str) -> Iterator[str]:
    """Compare one batch of all graphs with single graphs, pairs and shuffled batches; one text per difference.

    Args:
        function: from a batch to one row per graph, in evaluation mode.
        graphs: graphs without labels.
        what: what the rows are, for the text.
    """
    count = len(graphs)
    everything = torch.arange(count)
    shuffled = torch.randperm(count, generator=torch.Generator().manual_seed(5))
    ways = (("alone", everything, 1), ("in pairs", everything, 2), ("in shuffled batches", shuffled, 7))
    with torch.no_grad():
        together = function(graphs.batch(everything))
        if len(together) != count:
            yield f"{what} have {len(together)} rows for {count} graphs"
            return
        for way, order, size in ways:
            rows = torch.cat([function(graphs.batch(ids)) for ids in torch.split(order, size)])
            gap = float((rows - together[order]).abs().max() / together.abs().max().clamp(min=1.0))
            if not gap <= SLACK:
                yield f"{what} of graphs {way} differ from those of all graphs together (by {gap:.2g}, relative)"
