"""Small graphs and small encoders on which the encoders' tests run."""

import numpy as np

from harness import Features, PackedGraphs, RawGraph
from harness.randomness import generator, seeded

NUMERIC = Features("numeric", (3,))


def trees(count, seed=0, low=1, high=12):
    """Random trees of `low` to `high - 1` nodes, each edge in one direction; no two nodes share features."""
    rng = np.random.default_rng(seed)
    graphs = []
    for nodes in rng.integers(low, high, count).tolist():
        edges = [(int(rng.integers(0, i)), i) for i in range(1, nodes)]
        index = np.array(edges, np.int64).reshape(-1, 2).T
        graphs.append(RawGraph(rng.normal(size=(nodes, 3)).astype(np.float32), index, 0))
    return PackedGraphs.pack(graphs)


def small(encoder, features=NUMERIC, **values):
    """An encoder of two layers of width 8, set up as the engine does."""
    made = encoder(**{"snapshots": [1], "hidden": 8, "layers": 2, "batch_size": 8, **values})
    made.node_features, made.edge_features = features, Features("none")
    made.rng = generator(0, "method")
    return made


def fitted(encoder, graphs):
    """(epoch, module) of each snapshot."""
    with seeded(0, "encoder"):
        return list(encoder.fit(graphs))
