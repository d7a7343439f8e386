"""Where a sequence of graphs is cut into batches: after so many graphs, or before so many nodes would be exceeded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

_AHEAD = 1024  # graphs gathered at once: enough to make the fixed cost of a gather vanish
_IN_PLACE = 8192  # graphs laid out at once where they are visited as they lie: a layout is then kept for reuse


def batch_sizes(count: int, size: int, nodes: Tensor | None = None, *, bound: int = 0, at_least: int = 1) -> list[int]:
    """Graphs of each batch, which sum to ``count``.

    A batch ends after ``size`` graphs, or before the graph with which it would have more than ``bound`` nodes. It has
    ``at_least`` graphs even where these have more nodes; only the last one may have fewer.

    Args:
        count: graphs.
        size: most graphs per batch.
        nodes: (count,) nodes of each graph; read only where there is a bound.
        bound: most nodes per batch; 0 for any.
        at_least: fewest graphs per batch.
    """
    if not bound or nodes is None:
        full, rest = divmod(count, size)
        return [size] * full + [rest] * (rest > 0)
    total = torch.cumsum(nodes, 0).tolist()  # a search per batch needs no loop over graphs
    sizes: list[int] = []
    start = before = 0
    while start < count:
        stop = bisect_right(total, before + bound, start, min(start + size, count))
        stop = min(max(stop, start + at_least), count)
        sizes.append(stop - start)
        start, before = stop, total[stop - 1]
    return sizes


def chunks(sizes: Sequence[int], *, in_place: bool = False) -> Iterator[list[int]]:
    """Neighbouring batches that are gathered, or laid out in place, together."""
    most = _IN_PLACE if in_place else _AHEAD
    chunk: list[int] = []
    graphs = 0
    for size in sizes:
        if chunk and graphs + size > most:
            yield chunk
            chunk, graphs = [], 0
        chunk.append(size)
        graphs += size
    if chunk:
        yield chunk
