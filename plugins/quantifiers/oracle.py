"""Perfect votes for generated graphs: how often each class goes with a graph's base, which is the spurious part."""

from typing import Any

import numpy as np

from harness import Fitted, Quantifier, Register, hookimpl
from plugins.quantifiers._folds import Array, check


class Oracle(Quantifier):
    """P(label | base), counted on the training graphs (oracle: no method could know it; every output flags it).

    It shows what a decorrelator would do if encoder and quantifier made no mistake. The encoder's embeddings are not
    read, so that all candidates are alike. A base that no training graph has gets the shares of the classes.
    """

    name = "oracle"
    oracle = frozenset({"base"})

    def fit(self, embeddings: Array, labels: Array, num_classes: int, **setting: Any) -> Fitted:
        del setting
        base, y = check(embeddings, labels, num_classes)
        known, row = np.unique(base[:, 0], return_inverse=True)
        counts = np.zeros((len(known) + 1, num_classes))  # the last row: all training graphs
        np.add.at(counts, (row, y), 1)
        counts[-1] = counts.sum(0)
        table = counts / counts.sum(1, keepdims=True)

        def predict(rows: Array) -> Array:
            place = np.searchsorted(known, rows[:, 0]).clip(max=len(known) - 1)
            return table[np.where(known[place] == rows[:, 0], place, -1)]

        return Fitted(predict=predict)


@hookimpl
def bench_register(register: Register) -> None:
    register(Oracle)
