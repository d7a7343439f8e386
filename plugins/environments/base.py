"""Oracle environments of generated graphs: the type of the base graph, which is the spurious part."""

import torch

from harness import Environment, hookimpl


class Base(Environment):
    """The base graph of each training graph (oracle: no method could know it; every output flags it)."""

    name = "base"
    oracle = frozenset({"base"})

    def assign(self, train, oracle, upstream):
        del train, upstream
        return torch.unique(oracle["base"].reshape(-1).long(), return_inverse=True)[1]


@hookimpl
def bench_register(register):
    register(Base)
