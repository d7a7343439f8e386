"""Components for integration tests: a tiny dataset with everything a dataset can have, and methods that misbehave."""

import os
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np

from harness import Baseline, DataError, Dataset, Declaration, Features, RawDataset, RawGraph, Task, hookimpl, hparam


class Toy(Dataset):
    """Small random graphs whose label is a cue in the features; domains and an oracle field."""

    name = "toy"
    family = "synthetic"
    size: int = hparam(24, low=1, help="training graphs")
    seed: int = hparam(0, help="seed")
    permute_test: int = hparam(0, help="shuffle the test labels with this seed; 0 for not")
    classes: int = hparam(2, low=2, help="number of classes")
    one_class: list[str] = hparam([], help="splits whose graphs all get the label 0")
    metric: str = hparam("accuracy", choices=["accuracy", "rocauc"], help="metric")
    file: str | None = hparam(None, help="an input file, whose content shifts the features")
    refuse_text: bool = hparam(False, help="say what is wrong with the input file")
    own_env: bool = hparam(True, help="has environments of its own")
    package: str | None = hparam(None, help="a package that building it needs")

    def declare(self, data_dir):  # noqa: ARG002
        return Declaration(
            task=Task("binary" if self.classes == 2 else "multiclass", self.classes, metric=self.metric),
            node_features=Features("numeric", (3,)),
            environments=3 if self.own_env else 0,
            oracle=("base", "node_gt"),
            validation="unbiased",
            variant="toy",
        )

    def files(self, data_dir):  # noqa: ARG002
        return [] if self.file is None else [Path(self.file)]

    def build(self, data_dir):  # noqa: ARG002
        if self.package is not None:
            import_module(self.package)
        if self.refuse_text and not Path(self.file).read_text()[:1].isdigit():
            raise DataError(f"{self.file}: not a number\nwrite one number into it")
        sizes = {"train": self.size, "val": 19, "test": 23}
        splits = {name: [self._graph(i, s) for i in range(n)] for s, (name, n) in enumerate(sizes.items())}
        if self.permute_test:
            order = np.random.default_rng(self.permute_test).permutation(len(splits["test"]))
            labels = [splits["test"][i].y for i in order]
            for graph, label in zip(splits["test"], labels, strict=True):
                graph.y = label
        for graph in (graph for name in self.one_class for graph in splits[name]):
            graph.y = 0
        return RawDataset(splits)

    def _graph(self, index, split):
        rng = np.random.default_rng([self.seed, split, index])
        n = int(rng.integers(3, 7))
        y = int(rng.integers(self.classes))
        x = rng.normal(size=(n, 3)).astype(np.float32)
        x[:, 0] += y + (0 if self.file is None else float(Path(self.file).read_text()))
        edges = np.array([[i, j] for i in range(n) for j in range(n) if i != j and rng.random() < 0.6]).reshape(-1, 2).T
        oracle = {"base": int(rng.integers(5)), "node_gt": rng.integers(0, 2, n)}
        return RawGraph(x=x, edge_index=edges.astype(np.int64), y=y, env=int(rng.integers(3)), oracle=oracle)


class Misbehave(Baseline):
    """ERM that goes wrong in a chosen way, in the cell with a chosen seed or in all."""

    name = "misbehave"
    how: str = hparam(
        "raise", choices=["raise", "exit", "loop", "memory", "die", "diverge", "slow", "import", "none"], help="what"
    )

    def on_fit_start(self, train):  # noqa: ARG002
        if self.how == "raise":
            raise ValueError("no such thing")
        if self.how == "import":
            import_module("package_of_misbehave")
        if self.how == "exit":
            sys.exit(3)
        if self.how == "die":
            os._exit(9)
        if self.how == "loop":
            while True:
                time.sleep(0.01)
        if self.how == "memory":
            self.hog = []
            while True:
                self.hog.append(np.ones(4_000_000))
                time.sleep(0.005)
        if self.how == "slow":
            time.sleep(1.0)

    def loss(self, batch):
        loss = self.risk(self(batch), batch).mean()
        return {"erm": loss * float("nan") if self.how == "diverge" else loss}


@hookimpl
def bench_register(register):
    register(Toy)
    register(Misbehave)
