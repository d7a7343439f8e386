"""Environments as clusters of a reference model's embeddings, as several methods build them."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from harness import Environment, PackedGraphs, Register, hookimpl, hparam, upstream
from harness.nn import kmeans


class KMeans(Environment):
    """``k`` clusters of the graph embeddings of an ERM, by scikit-learn's k-means (best of ten starts).

    A reference that leans on spurious features sorts graphs by them. ``normalised`` scales the embeddings to unit
    length first, so that the squared distance is twice one minus the cosine. The number of environments is smaller
    than ``k`` where there are fewer distinct embeddings; a flag says so.
    """

    name = "kmeans"
    positional = counted_by = "k"
    upstream = {"reference": upstream("baseline", "erm", train={"epochs": "$ref_epochs"}, checkpoint="$ref_checkpoint")}
    k: int = hparam(2, low=1, search=[2, 3, 5], help="number of clusters")
    normalised: bool = hparam(False, help="scale embeddings to unit length: cosine distance")
    ref_epochs: int | None = hparam(
        10, low=1, search=[5, 10, 20], help="epochs of the reference ERM; none: as many as the method's own training"
    )
    ref_checkpoint: str = hparam("last", choices=["last", "best-val"], help="which weights of the reference")

    def assign(self, train: PackedGraphs, oracle: Mapping[str, Tensor], upstream: Mapping[str, Any]) -> Tensor:
        del train, oracle
        points = upstream["reference"].embeddings.double()
        if self.normalised:
            points = torch.nn.functional.normalize(points)
        ids = torch.unique(kmeans(points, self.k, generator=self.rng).ids, return_inverse=True)[1]
        found = int(ids.max()) + 1
        if found < self.k:
            self.flags.append(f"{found} clusters instead of {self.k}: there are no more distinct embeddings")
        return ids


@hookimpl
def bench_register(register: Register) -> None:
    register(KMeans)
