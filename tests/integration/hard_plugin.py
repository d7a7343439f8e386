"""A dataset of graphs that break careless code, and one too small to train on."""

import numpy as np

from harness import Dataset, Declaration, Features, RawDataset, RawGraph, Task, hookimpl, hparam

CLASSES = 3
RARE = 3


class Hard(Dataset):
    """Single nodes, no edges, isolated first, middle and last nodes, a class of three graphs, and odd batch sizes."""

    name = "hard"
    family = "synthetic"
    graphs: int = hparam(25, low=1, help="training graphs; 25 leaves a last batch of one for batches of 8")

    def declare(self, data_dir):  # noqa: ARG002
        return Declaration(
            task=Task("multiclass", CLASSES),
            node_features=Features("numeric", (3,)),
            environments=3,
            oracle=("base",),
            validation="unbiased",
            variant="hard",
        )

    def build(self, data_dir):  # noqa: ARG002
        sizes = {"train": self.graphs, "val": 9, "test": 17}
        return RawDataset({name: self._split(index, n) for index, (name, n) in enumerate(sizes.items())})

    def _split(self, split, n):
        """The rare class has three graphs in training and none elsewhere: it is absent from most batches."""
        rng = np.random.default_rng(split)
        rare = range(1, 1 + RARE) if split == 0 else ()
        labels = [2 if i in rare else int(rng.integers(2)) for i in range(n)]
        return [_graph(rng, i % 6, y) for i, y in enumerate(labels)]


def _graph(rng, shape, y):
    nodes, edges = (
        (1, []),
        (4, []),
        (4, [(1, 2), (2, 3), (1, 3)]),
        (5, [(0, 1), (1, 3), (3, 4)]),
        (4, [(0, 1), (1, 2)]),
        (6, [(i, j) for i in range(6) for j in range(i)]),
    )[shape]
    both = np.array([*edges, *[(j, i) for i, j in edges]], dtype=np.int64).reshape(-1, 2).T
    x = rng.normal(size=(nodes, 3)).astype(np.float32)
    x[:, 0] += y
    return RawGraph(x=x, edge_index=both, y=y, env=int(rng.integers(3)), oracle={"base": int(rng.integers(4))})


@hookimpl
def bench_register(register):
    register(Hard)
