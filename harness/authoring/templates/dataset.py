"""Rings and chains on stars and paths: the shape is the cause, the base a shortcut."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
from harness import (
    Dataset,
    Declaration,
    Features,
    RawDataset,
    RawGraph,
    Register,
    Task,
    hookimpl,
    hparam,
)
from numpy.typing import NDArray

Edges = NDArray[np.int64]


class NewComponent(Dataset):
    """A ring (label 1) or a chain (label 0), joined by one edge to a star or a path.

    Some shapes are the wrong ones, in every split alike. In training and validation the
    base goes with the label: in a share of the graphs of environment 0, and in somewhat
    fewer of environment 1. In test it says nothing, so that a method that trusts it
    falls. Say here how the graphs come about, and where they are published.
    """

    name = "new-component"

    # Which family of a protocol's defaults holds: synthetic, ogb, drugood …
    family = "synthetic"

    # Small settings for `bench check`.
    probes: ClassVar = {"*": {"graphs": 30}, "graphs": {"graphs": 20}}

    bias: float = hparam(
        0.9,
        low=0.5,
        high=1.0,
        help="share of graphs of environment 0 whose base goes with the label",
    )
    noise: float = hparam(
        0.15,
        low=0.0,
        high=0.5,
        help="share of graphs whose shape is not their label's",
    )
    graphs: int = hparam(200, low=2, help="graphs in each split")
    seed: int = hparam(0, low=0, help="seed of the generator")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Return the facts known before building: cheap, as every plan asks."""
        del data_dir
        return Declaration(
            Task("binary", 2),
            Features("numeric", (1,)),
            validation="biased",
            environments=2,
            # Ground truth that only components which declare it may read.
            oracle=("base",),
        )

    def build(self, data_dir: Path | None) -> RawDataset:
        """The graphs of each split, as NumPy arrays. Runs once, and is cached."""
        del data_dir
        rng = np.random.default_rng(self.seed)
        splits: dict[str, list[RawGraph]] = {"train": [], "val": [], "test": []}
        for split, graphs in splits.items():
            graphs += [self.graph(rng, split, i % 2) for i in range(self.graphs)]
        return RawDataset(splits)

    def graph(self, rng: np.random.Generator, split: str, env: int) -> RawGraph:
        """One graph; every draw comes from the generator."""
        share = 0.5 if split == "test" else self.bias - 0.1 * env
        y = int(rng.integers(2))
        base = y if rng.random() < share else 1 - y
        right = y if rng.random() >= self.noise else 1 - y
        size, more = int(rng.integers(5, 9)), int(rng.integers(5, 9))
        shape = ring(size) if right else chain(size)
        rest = size + (star(more) if base else chain(more))
        joined = np.concatenate([shape, rest, [[0], [size]]], axis=1)
        both = np.concatenate([joined, joined[::-1]], axis=1)  # both directions
        x = np.ones((size + more, 1), np.float32)
        return RawGraph(x, both, y, env=env, oracle={"base": base})


def chain(size: int) -> Edges:
    """(2, size - 1) edges of a path."""
    nodes = np.arange(size)
    return np.stack([nodes[:-1], nodes[1:]])


def ring(size: int) -> Edges:
    """(2, size) edges of a cycle."""
    nodes = np.arange(size)
    return np.stack([nodes, (nodes + 1) % size])


def star(size: int) -> Edges:
    """(2, size - 1) edges from node 0 to all others."""
    nodes = np.arange(size)
    return np.stack([np.zeros(size - 1, dtype=np.int64), nodes[1:]])


@hookimpl
def bench_register(register: Register) -> None:
    """Tell the harness which components this module brings."""
    register(NewComponent)
