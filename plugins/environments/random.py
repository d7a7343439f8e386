"""Random environments, fixed for the whole training: the control that carries no information."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from harness import Environment, PackedGraphs, Register, hookimpl, hparam


class Random(Environment):
    """A random partition of the training graphs into ``k`` parts whose sizes differ by at most one."""

    name = "random"
    positional = counted_by = "k"
    k: int = hparam(2, low=1, help="number of environments")

    def assign(self, train: PackedGraphs, oracle: Mapping[str, Tensor], upstream: Mapping[str, Any]) -> Tensor:
        del oracle, upstream
        return torch.randperm(len(train), generator=self.rng) % self.k


@hookimpl
def bench_register(register: Register) -> None:
    register(Random)
