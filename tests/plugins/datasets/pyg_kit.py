"""A user's file of PyG datasets and functions, good and bad."""

from __future__ import annotations

from pathlib import Path

MINE = '''
import torch
from torch_geometric.data import Data, InMemoryDataset
from scale import SCALE


class Mine(InMemoryDataset):
    """Written in the way of PyG's old tutorial: it reads what it has stored with plain torch.load."""

    def __init__(self, root, bias=0.5, transform=None, pre_transform=None):
        self.bias = bias
        super().__init__(root, transform, pre_transform)
        self._data, self.slices = torch.load(self.processed_paths[0])

    @property
    def processed_file_names(self):
        return ["data.pt"]

    def process(self):
        graphs = []
        for row in range(40):
            n, y = 5 + row % 7, row % 2
            nodes = torch.arange(n)
            edges = torch.stack([nodes, (nodes + 1) % n])
            x = torch.rand(n, 3) + y * self.bias * SCALE
            graphs.append(Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1), y=torch.tensor([3 * y + 1])))
        torch.save(self.collate(graphs), self.processed_paths[0])


class Raw(Mine):
    """As above, but from a raw file, which it would download."""

    @property
    def raw_file_names(self):
        return ["numbers.txt"]

    def download(self):
        raise RuntimeError("the network was tried")


class Rootless(InMemoryDataset):
    """All in memory: no root, and nothing that is processed."""

    def __init__(self, count=6):
        super().__init__()
        self.data, self.slices = self.collate(small(count))


class Listed:
    """No class of PyG's, with a folder of its own."""

    def __init__(self, root, count=6):
        self.graphs = small(count)
        for graph in self.graphs:
            graph.y = torch.tensor([len(str(root))])

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, row):
        return self.graphs[row]


def rootless():
    return Rootless()


def edge(n=3, y=0, **fields):
    label = None if y is None else torch.tensor([y])
    defaults = {"x": torch.ones(n, 2), "edge_index": torch.tensor([[0, 1], [1, 0]]), "y": label}
    return Data(**{name: value for name, value in {**defaults, **fields}.items() if value is not None})


def small(count=20):
    """Graphs of 3, 4 … nodes with codes; every other one is of class 1."""
    return [edge(3 + i, i % 2, x=torch.arange(3 + i)[:, None] % 4, split=i % 3) for i in range(count)]


def named(split):
    """A part of the data for each of train, val and test."""
    start = {"train": 0, "val": 6, "test": 8}[split]
    return small()[start : start + 4]


def by_split(names=("train", "valid", "test"), y=1, empty=False, bare=False, none=False):
    """A dict of splits: graphs of 3, 4, 5 | 6, 7 | 8 nodes."""
    found = small(6)
    found[3].y = None if y is None else torch.tensor([y])
    parts = dict(zip(names, (found[:3], found[3:5], found[5:])))
    if empty:
        parts["valid"].insert(1, emptied([0])[0])
    if none:
        parts["valid"] = []
    return {name: found[0] for name in parts} if bare else parts


def one(twice=False):
    return (edge() for _ in range(2)) if twice else edge()


def emptied(rows):
    """Some graphs without nodes, which have no features either."""
    found = small()
    for row in rows:
        none = torch.zeros(2, 0, dtype=torch.long)
        found[row] = Data(num_nodes=0, edge_index=none, y=found[row].y, split=row % 3)
    return found


def edgeless():
    """The first graph has no edges, and what stands for their features is of another width and type."""
    found = [edge(y=i % 2, edge_attr=torch.full((2, 2), 2)) for i in range(20)]
    found[0].edge_index, found[0].edge_attr = torch.zeros(2, 0, dtype=torch.long), torch.zeros(0)
    return found


def masked():
    found = small(6)
    for i, graph in enumerate(found):
        for number, name in enumerate(("train_mask", "val_mask", "test_mask")):
            graph[name] = torch.tensor(i // 2 == number)
    return found


def without_x(counted=True):
    """The last node is isolated: the edges alone do not show it."""
    more = {"num_nodes": 4} if counted else {}
    return [edge(x=None, y=i % 2, **more) for i in range(20)]


def lacking(first=True):
    """One graph has no edge_attr: the first, or the last."""
    found = [edge(y=i % 2, edge_attr=torch.ones(2, 1)) for i in range(20)]
    del found[0 if first else -1].edge_attr
    return found


def changed(field, value):
    found = [edge(y=i % 2) for i in range(20)]
    found[7][field] = torch.tensor(value)
    return found


def tasks():
    nan = float("nan")
    none = torch.zeros(2, 0, dtype=torch.long)
    return [edge(edge_index=none, y=None).update({"y": torch.tensor([[i % 2, nan, 1.0]])}) for i in range(20)]


def indicators():
    return [edge(y=None).update({"y": torch.tensor([[i % 2, 1 - i % 2]])}) for i in range(20)]


def negative():
    return [edge(y=i % 2, x=torch.tensor([[-1], [2], [3]])) for i in range(20)]


def missing_label():
    found = [edge(y=i % 2) for i in range(20)]
    found[3].y = torch.tensor([float("nan")])
    return found


def regression():
    return [edge(y=i + 0.5) for i in range(20)]


def nothing():
    return []


def broken():
    raise ValueError("my own\\nfault")
'''


def write_file(folder: Path, scale: float = 1.0) -> str:
    """The file and the module that it imports. Returns the file's path."""
    (folder / "scale.py").write_text(f"SCALE = {scale}\n")
    path = folder / "mine.py"
    path.write_text(MINE)
    return str(path)
