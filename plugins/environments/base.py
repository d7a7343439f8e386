"""Oracle environments of generated graphs: the type of the base graph, which is the spurious part."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from harness import Environment, PackedGraphs, Register, hookimpl


class Base(Environment):
    """The base graph of each training graph (oracle: no method could know it; every output flags it)."""

    name = "base"
    oracle = frozenset({"base"})

    def assign(self, train: PackedGraphs, oracle: Mapping[str, Tensor], upstream: Mapping[str, Any]) -> Tensor:
        del train, upstream
        return torch.unique(oracle["base"].reshape(-1).long(), return_inverse=True)[1]


@hookimpl
def bench_register(register: Register) -> None:
    register(Base)
