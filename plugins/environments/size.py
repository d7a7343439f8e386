"""Environments by graph size: quantiles of the number of nodes."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from harness import Environment, PackedGraphs, Register, hookimpl, hparam
from plugins.environments.domain import merge_neighbours


class Size(Environment):
    """``k`` ranges of the number of nodes with about equally many graphs, from small to large.

    Graphs of one size are never parted, so there may be fewer environments than ``k``; a flag says so.
    """

    name = "size"
    positional = counted_by = "k"
    k: int = hparam(2, low=1, help="number of environments")

    def assign(self, train: PackedGraphs, oracle: Mapping[str, Tensor], upstream: Mapping[str, Any]) -> Tensor:
        del oracle, upstream
        ids = merge_neighbours(torch.unique(train.node_ptr.diff(), return_inverse=True)[1], self.k)
        found = int(ids.max()) + 1
        if found < self.k:
            self.flags.append(f"{found} environments instead of {self.k}: one size has more than a share of the graphs")
        return ids


@hookimpl
def bench_register(register: Register) -> None:
    register(Size)
