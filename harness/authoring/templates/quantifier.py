"""A Gaussian around the mean of each class (linear discriminant, Fisher, 1936)."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Fitted, Quantifier, Register, hookimpl, hparam
from numpy.typing import NDArray


class NewComponent(Quantifier):
    """Class probabilities from distances to class means, each column by its own scale.

    A quantifier turns graph embeddings and training labels into a function from
    embeddings to class probabilities. Say here what it fits, and the paper.
    """

    name = "new-component"

    temperatures: list[float] = hparam(
        [1.0, 10.0],
        low=0.01,
        help="each is a candidate; large ones give probabilities that are less sure",
    )

    def settings(self) -> list[dict[str, Any]]:
        """The candidates; each is fitted on every snapshot of every encoder."""
        return [{"temperature": value} for value in self.temperatures]

    def fit(
        self,
        embeddings: NDArray[np.float64],
        labels: NDArray[np.int64],
        num_classes: int,
        *,
        temperature: float = 1.0,
        **setting: Any,
    ) -> Fitted:
        """Fit on (n, d) embeddings and (n,) labels; a column per class, in order."""
        del setting
        present = np.unique(labels)  # a class may have no training row
        means = np.stack([embeddings[labels == c].mean(0) for c in present])
        within = embeddings - means[np.searchsorted(present, labels)]
        scale = within.std(0) + 1e-6 * embeddings.std(0) + 1e-12
        log_share = np.log([(labels == c).mean() for c in present])

        def predict(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            gaps = (rows[:, None, :] - means[None]) / scale  # (rows, present, d)
            logits = log_share - 0.5 * np.square(gaps).mean(2) / temperature
            odds = np.exp(logits - logits.max(1, keepdims=True))
            table = np.zeros((len(rows), num_classes))
            table[:, present] = odds / odds.sum(1, keepdims=True)
            return table

        return Fitted(predict)


@hookimpl
def bench_register(register: Register) -> None:
    """Tell the harness which components this module brings."""
    register(NewComponent)
