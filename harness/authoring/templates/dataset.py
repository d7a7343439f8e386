"""Rings and chains with a star or a tail: the shape is the cause."""

from pathlib import Path
from typing import ClassVar

import harness
import numpy as np
from harness import Declaration, RawDataset, RawGraph, hookimpl, hparam


class NewComponent(harness.Dataset):
    """A ring (label 1) or a chain (label 0), to which a star or a tail is joined.

    Some shapes are the wrong ones, in every split alike. In training and validation the
    rest goes with the label: in a share of the graphs of environment 0, and in somewhat
    fewer of environment 1. In test it says nothing, so that a method that trusts it
    falls. Say here how the graphs come about, and where they are published.
    """

    name = "new-component"
    family = "synthetic"  # whose defaults of a protocol hold: synthetic, ogb, drugood …

    # Small settings for `bench check`.
    probes: ClassVar = {"*": {"graphs": 30}, "graphs": {"graphs": 20}}

    bias: float = hparam(0.9, low=0.5, high=1.0, help="share with the shortcut")
    graphs: int = hparam(200, low=2, help="graphs in each split")
    seed: int = hparam(0, low=0, help="seed of the generator")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Return the facts known before building: cheap, as every plan asks."""
        del data_dir
        return Declaration(
            harness.Task("binary", 2),
            harness.Features("numeric", (1,)),
            validation="biased",
            environments=2,
            oracle=("star",),  # truth that only components which declare it may read
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
        star = y if rng.random() < share else 1 - y
        ring = y if rng.random() < 0.85 else 1 - y
        size, more = int(rng.integers(5, 9)), int(rng.integers(5, 9))
        edges = [(i, i + 1) for i in range(size - 1)] + [(size - 1, 0)] * ring
        edges += [(0 if star else i - 1, i) for i in range(size, size + more)]
        both = np.array([*edges, *((j, i) for i, j in edges)]).T  # both directions
        x = np.ones((size + more, 1), np.float32)
        return RawGraph(x, both, y, env=env, oracle={"star": star})


@hookimpl
def bench_register(register: harness.Register) -> None:
    register(NewComponent)
