"""k-means, seeded and safe on degenerate input."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import torch

# Not in the function: importing it for the first time draws from Python's global generator.
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from harness.errors import DivergedError


class Clusters(NamedTuple):
    """A partition of n rows into k clusters.

    Attributes:
        ids: (n,) int64 cluster of each row.
        centres: (k, d) means of the clusters.
    """

    ids: Tensor
    centres: Tensor


def kmeans(rows: Tensor, k: int, *, generator: torch.Generator, restarts: int = 10) -> Clusters:
    """Cluster by scikit-learn's k-means from k-means++ starts; the best of ``restarts`` by the sum of squares.

    Arthur and Vassilvitskii, *k-means++: The Advantages of Careful Seeding*, SODA 2007. NumPy's global generator is
    neither seeded nor drawn from. Where there are fewer rows than k there are as many clusters as rows; where fewer
    distinct ones, some ids do not occur.

    Args:
        rows: (n, d), n at least 1; gradients are not followed.
        k: number of clusters.
        generator: gives the seed.
        restarts: number of starts.

    Raises:
        DivergedError: a row is not finite.
    """
    if not bool(torch.isfinite(rows).all()):
        raise DivergedError("the embeddings to be clustered are not finite")
    seed = int(torch.randint(2**31 - 1, (1,), generator=generator))
    model = KMeans(min(k, len(rows)), n_init=restarts, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it says that there are fewer distinct rows than clusters
        ids = model.fit_predict(rows.detach().cpu().numpy())
    return Clusters(
        torch.from_numpy(ids).long().to(rows.device),
        torch.from_numpy(model.cluster_centers_).to(rows.device, rows.dtype),
    )
