"""Votes of the nearest training graphs (Cover and Hart, 1967)."""

from typing import Any

import numpy as np
from harness import Fitted, Quantifier, Register, hookimpl, hparam
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier


class NewComponent(Quantifier):
    """Class probabilities are the shares of the classes among the nearest embeddings.

    A quantifier turns graph embeddings and training labels into a function from
    embeddings to class probabilities. Say here what it fits, and the paper.
    """

    name = "new-component"

    neighbours: list[int] = hparam([5, 25], low=1, help="each is a candidate")

    def settings(self) -> list[dict[str, Any]]:
        """The candidates; each is fitted on every snapshot of every encoder."""
        return [{"neighbours": count} for count in self.neighbours]

    def fit(
        self,
        embeddings: NDArray[np.float64],
        labels: NDArray[np.int64],
        num_classes: int,
        *,
        neighbours: int = 5,
        **setting: Any,
    ) -> Fitted:
        """Fit on (n, d) embeddings and (n,) labels; a column per class, in order."""
        del setting
        nearest = KNeighborsClassifier(min(neighbours, len(labels)))
        nearest.fit(embeddings, labels)

        def predict(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            table = np.zeros((len(rows), num_classes))
            table[:, nearest.classes_] = nearest.predict_proba(rows)
            return table  # a class without training rows has probability 0

        return Fitted(predict)


@hookimpl
def bench_register(register: Register) -> None:
    register(NewComponent)
