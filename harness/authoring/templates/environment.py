"""Environments by density: from the sparsest graphs to the densest."""

from collections.abc import Mapping
from typing import Any

from harness import Environment, PackedGraphs, Register, hookimpl, hparam
from torch import Tensor


class NewComponent(Environment):
    """Groups of equal count by edges per node; ties go by position.

    An environment component gives each training graph an environment, once before
    training. Say in this docstring what separates the environments, and the source.
    """

    name = "new-component"

    positional = "k"  # what a suite's `envs: NAME(3)` sets
    k: int = hparam(2, low=2, help="number of environments")

    def assign(
        self,
        train: PackedGraphs,
        oracle: Mapping[str, Tensor],
        upstream: Mapping[str, Any],
    ) -> Tensor:
        """(graphs,) ids 0..k-1; -1 would be a graph of no environment."""
        del oracle, upstream  # ground truth and other trainings, where declared
        # Graphs are stored end to end; edge_ptr and node_ptr say where each begins.
        density = train.edge_ptr.diff() / train.node_ptr.diff()
        rank = density.argsort(stable=True).argsort()
        return rank * self.k // len(train)


@hookimpl
def bench_register(register: Register) -> None:
    register(NewComponent)
