"""Components other than learners with one known bug each."""

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from harness import (
    Backbone,
    Dataset,
    Declaration,
    Encoder,
    Environment,
    Features,
    Fitted,
    Quantifier,
    RawDataset,
    RawGraph,
    Task,
    hparam,
)
from harness.nn import GINConv, make_front, pool


class Network(nn.Module):
    def __init__(self, features, hidden, layers):
        super().__init__()
        self.front = make_front(features, hidden)
        self.convs = nn.ModuleList(GINConv(hidden, hidden) for _ in range(layers))

    def forward(self, batch):
        h = self.front(batch.x)
        for conv in self.convs:
            h = conv(h, batch)
        return pool(h, batch, "mean")


class SoundEncoder(Encoder):
    """No bug: learns embeddings of a given norm."""

    name = "sound"

    def fit(self, graphs):
        network = Network(self.node_features, self.hidden, self.layers).to(graphs.x.device)
        adam = torch.optim.Adam(network.parameters(), lr=self.lr)
        for epoch in range(1, max(self.snapshots) + 1):
            for batch in graphs.batches(self.batch_size, torch.randperm(len(graphs), generator=self.rng)):
                adam.zero_grad()
                self.loss(network, batch).backward()
                adam.step()
            if epoch in self.snapshots:
                yield epoch, network

    def loss(self, network, batch):
        return (network(batch).square().sum(1) - 1).square().mean()


class CompanionEncoder(SoundEncoder):
    """Embeds in training mode."""

    name = "companion"

    def fit(self, graphs):
        for epoch, network in super().fit(graphs):
            network.eval = lambda network=network: network
            yield epoch, network


class ShuffledEncoder(SoundEncoder):
    """Embeds the graphs by size, and forgets to put them back."""

    name = "shuffled"

    def embed(self, module, graphs):
        return super().embed(module, graphs.select(graphs.node_ptr.diff().argsort()))


class LateEncoder(SoundEncoder):
    """Gives its snapshots from the last to the first."""

    name = "late"

    def fit(self, graphs):
        yield from reversed(list(super().fit(graphs)))


class ListEncoder(SoundEncoder):
    """Returns its snapshots once all are made: each module is the last one."""

    name = "listed"

    def fit(self, graphs):
        return list(super().fit(graphs))


class ReseedingEncoder(SoundEncoder):
    name = "reseeding"

    def fit(self, graphs):
        torch.manual_seed(self.seed)
        yield from super().fit(graphs)


class StillEncoder(SoundEncoder):
    """Never steps."""

    name = "still"

    def loss(self, network, batch):
        return 0.0 * super().loss(network, batch)


class SoundQuantifier(Quantifier):
    """No bug: Gaussian classes of one spread."""

    name = "sound"
    spread: float = hparam(3.0, low=0.1)

    def order(self, labels, num_classes):
        return range(num_classes)

    def fit(self, embeddings, labels, num_classes):
        scale = embeddings.std(0)
        order = self.order(labels, num_classes)
        rows = [(embeddings[labels == c] / scale).mean(0) if (labels == c).any() else None for c in order]

        def predict(new):
            score = np.full((len(new), num_classes), -np.inf)
            for column, centre in enumerate(rows):
                if centre is not None:
                    score[:, column] = -((new / scale - centre) ** 2).sum(1) / self.spread
            return self.normalise(np.exp(score - score.max(1, keepdims=True)))

        return Fitted(predict)

    def normalise(self, table):
        return table / table.sum(1, keepdims=True)


class UnnormalisedQuantifier(SoundQuantifier):
    name = "unnormalised"

    def normalise(self, table):
        return table


class FrequencyOrder(SoundQuantifier):
    """Columns in the order in which labels first appear."""

    name = "frequency-order"

    def order(self, labels, num_classes):
        first = list(dict.fromkeys(labels.tolist()))
        return [*first, *(c for c in range(num_classes) if c not in first)]


class GlobalQuantifier(SoundQuantifier):
    """Noise from NumPy's global generator."""

    name = "global"

    def normalise(self, table):
        table = table + 1e-9 * np.random.rand(*table.shape)
        return super().normalise(table)


class SoundEnvironment(Environment):
    name = "sound"
    k: int = hparam(2, low=1)

    def assign(self, train, oracle, upstream):
        return torch.randperm(len(train), generator=self.rng) % self.k


class FloatIds(SoundEnvironment):
    name = "float-ids"

    def assign(self, train, oracle, upstream):
        return super().assign(train, oracle, upstream).float()


class GapInIds(SoundEnvironment):
    name = "gap-in-ids"

    def assign(self, train, oracle, upstream):
        return 2 * super().assign(train, oracle, upstream) + 1


class ForgetsToProvide(SoundEnvironment):
    name = "forgets-to-provide"
    provides = frozenset({"fragments"})


class GlobalIds(SoundEnvironment):
    name = "global-ids"

    def assign(self, train, oracle, upstream):
        return torch.randint(self.k, (len(train),))


class DeadGroups(SoundEnvironment):
    name = "dead-groups"
    shuffle: bool = hparam(True)


class SoundDataset(Dataset):
    """No bug: paths and cycles with a colour that is right in nine of ten training graphs."""

    name = "sound"
    graphs: int = hparam(30, low=2)
    seed: int = hparam(0, low=0)

    def declare(self, data_dir):
        return Declaration(Task("binary", 2), Features("numeric", (2,)), oracle=("colour", "node_gt"))

    def generator(self):
        return np.random.default_rng(self.seed)

    def build(self, data_dir):
        rng = self.generator()
        return RawDataset({split: [self.graph(rng) for _ in range(self.graphs)] for split in ("train", "val", "test")})

    def graph(self, rng):
        y, n = int(rng.integers(2)), int(rng.integers(4, 8))
        nodes = np.arange(n - 1 + y)
        edges = np.stack([nodes, (nodes + 1) % n])
        colour = y if rng.random() < 0.9 else 1 - y
        oracle = {"colour": colour, "node_gt": rng.integers(2, size=n)}
        x = self.features(y, n, oracle, rng)
        return RawGraph(x.astype(np.float32), np.concatenate([edges, edges[::-1]], axis=1), y, oracle=oracle)

    def features(self, y, n, oracle, rng):
        return np.stack([np.full(n, oracle["colour"]), rng.normal(size=n)], axis=1)


class LabelInFeatures(SoundDataset):
    name = "label-in-features"

    def features(self, y, n, oracle, rng):
        return np.stack([np.full(n, 5 * y), rng.normal(size=n)], axis=1)


class TruthInFeatures(SoundDataset):
    name = "truth-in-features"

    def features(self, y, n, oracle, rng):
        return np.stack([oracle["node_gt"], rng.normal(size=n)], axis=1)


class SharedGraphs(SoundDataset):
    """A test graph is a training graph."""

    name = "shared-graphs"

    def build(self, data_dir):
        raw = super().build(data_dir)
        raw.splits["test"][3] = raw.splits["train"][0]
        return raw


class SameFeatures(SoundDataset):
    """Nodes are alike and graphs are of one size, so that only edges tell them apart; the truth has two columns."""

    name = "same-features"

    def graph(self, rng):
        edges, y = rng.integers(5, size=(2, 8)), int(rng.integers(2))
        oracle = {"colour": 1 - y, "node_gt": rng.integers(2, size=(5, 2))}
        return RawGraph(np.ones((5, 2), np.float32), edges, y, oracle=oracle)


class RepeatedSplit(SoundDataset):
    """Validation is drawn from the generator's start again, and is the training split."""

    name = "repeated-split"

    def build(self, data_dir):
        splits = {}
        for split in ("train", "val", "test"):
            rng = self.generator() if split != "test" else np.random.default_rng([self.seed, 1])
            splits[split] = [self.graph(rng) for _ in range(self.graphs)]
        return RawDataset(splits)


class GlobalDataset(SoundDataset):
    name = "global"

    def generator(self):
        np.random.seed(self.seed)
        return np.random.default_rng(np.random.randint(2**31))


class UnstableDataset(SoundDataset):
    name = "unstable"

    def generator(self):
        return np.random.default_rng()


class OtherDeclaration(SoundDataset):
    name = "other-declaration"

    def declare(self, data_dir):
        return replace(super().declare(data_dir), node_features=Features("numeric", (3,)))


class SoundBackbone(Backbone):
    """No bug."""

    name = "sound"

    def build(self, node_features, edge_features):
        self.front = make_front(node_features, self.hidden)
        edges = edge_features if self.edge_features else None
        self.convs = nn.ModuleList(GINConv(self.hidden, self.hidden, edges) for _ in range(self.layers))

    def forward(self, batch, x=None, edge_weight=None):
        h = self.front(batch.x if x is None else x)
        for conv in self.convs:
            h = nn.functional.dropout(self.conv(conv, h, batch, edge_weight), self.dropout, self.training)
        return h

    def conv(self, conv, h, batch, edge_weight):
        return conv(h, batch, edge_weight)


class IgnoresWeights(SoundBackbone):
    name = "ignores-weights"

    def conv(self, conv, h, batch, edge_weight):
        return conv(h, batch)


class OneLayerHeeds(SoundBackbone):
    """Weights enter the last layer only."""

    name = "one-layer-heeds"

    def conv(self, conv, h, batch, edge_weight):
        return conv(h, batch, edge_weight if conv is self.convs[-1] else None)


class MixesBatch(SoundBackbone):
    """Centres node rows over the batch."""

    name = "mixes-batch"

    def conv(self, conv, h, batch, edge_weight):
        rows = conv(h, batch, edge_weight)
        return rows - rows.mean(0)


class CountsNodes(SoundBackbone):
    """Gives a node's place in its graph away."""

    name = "counts-nodes"

    def conv(self, conv, h, batch, edge_weight):
        place = torch.arange(len(h), device=h.device) - batch.ptr[batch.batch]
        return conv(h, batch, edge_weight) + 0.1 * place[:, None]


class ReadsBatchX(SoundBackbone):
    """Reads the batch's features although others are given."""

    name = "reads-batch-x"

    def forward(self, batch, x=None, edge_weight=None):
        return super().forward(batch, None, edge_weight)


class DeadDropout(SoundBackbone):
    name = "dead-dropout"

    def forward(self, batch, x=None, edge_weight=None):
        h = self.front(batch.x if x is None else x)
        for conv in self.convs:
            h = conv(h, batch, edge_weight)
        return h
