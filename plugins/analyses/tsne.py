"""A map of the embeddings: t-SNE (van der Maaten and Hinton, JMLR 2008)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness import Analysis, Findings, Register, Study, UserError, hookimpl, hparam
from plugins.analyses._plots import label_outer, legend_below, of_pairs, panels

if TYPE_CHECKING:
    from harness import TrainedCell

MARKERS = (("o", "base agrees"), ("x", "base differs"))


class TSNE(Analysis):
    """Two-dimensional map of graph embeddings, coloured by class, marked by whether the base goes with the label.

    With scikit-learn's t-SNE (van der Maaten and Hinton, *Visualizing Data using t-SNE*, JMLR 2008), started from the
    first two principal components. Distances between clusters and their sizes mean nothing. One seed, as a map cannot
    be averaged.

    The table has a number that does not depend on the map: how often a graph's nearest neighbours in embedding space
    carry its label, and how often they agree with it on the base.
    """

    name = "tsne"
    tasks = frozenset({"binary", "multiclass"})
    first_seeds = 1
    oracle_where_there = frozenset({"base"})
    probes = {"*": {"graphs": 10}, "split": {"split": "train"}, "perplexity": {"perplexity": 2.0}}

    split: str | None = hparam(None, help="the split to map; none: the one that chose the checkpoint")
    source: str = hparam("network", choices=("network", "encoder"), help="the trained network, or the first encoder")
    graphs: int = hparam(1000, low=10, help="graphs drawn from the split")
    perplexity: float = hparam(30.0, low=1.0, help="t-SNE's perplexity, capped at a third of the graphs")
    neighbours: int = hparam(10, low=1, help="nearest neighbours that the table looks at")

    def measure(self, cell: TrainedCell) -> dict[str, Any]:
        from sklearn.manifold import TSNE as Map
        from sklearn.neighbors import NearestNeighbors

        split = self.split or cell.monitor
        labels = cell.labels(split)
        rng = np.random.Generator(np.random.PCG64(cell.seed))
        chosen = np.sort(rng.permutation(len(labels))[: self.graphs])
        table, labels = self._embeddings(cell, split)[chosen].astype(np.float64), labels[chosen]
        perplexity = min(self.perplexity, (len(table) - 1) / 3)
        near = NearestNeighbors(n_neighbors=min(self.neighbours + 1, len(table))).fit(table)
        neighbours = near.kneighbors(return_distance=True, n_neighbors=min(self.neighbours, len(table) - 1))[1]
        found: dict[str, Any] = {
            "map": Map(init="pca", perplexity=perplexity, random_state=cell.seed).fit_transform(table),
            "labels": labels,
            "split": split,
            "same_label": float((labels[neighbours] == labels[:, None]).mean()),
        }
        if "base" in cell.oracle_fields:
            base = cell.oracle("base", split)[chosen]
            found["agrees"] = base == labels
            found["same_base"] = float((base[neighbours] == base[:, None]).mean())
        return found

    def _embeddings(self, cell: TrainedCell, split: str) -> NDArray[np.float32]:
        if self.source == "network":
            return cell.embeddings(split)
        if not cell.encoders:
            raise UserError("'source: encoder' needs a method with an encoder; name such methods with methods: [...]")
        return cell.encoders[0].embeddings(split)

    def present(self, study: Study) -> Findings:
        rows = []
        for cell in study.cells:
            near = cell.values["same_label"], cell.values.get("same_base")
            rows.append((cell.dataset, cell.method, cell.seed, cell.values["split"], len(cell.arrays["labels"]), *near))
        return Findings(
            ("dataset", "method", "seed", "split", "graphs", "neighbours of its class", "neighbours of its base"),
            tuple(rows),
            (f"Shares of each graph's {self.neighbours} nearest neighbours among the embeddings ({self.source}).",),
        )

    def figure(self, study: Study) -> Any:
        cells = {(cell.dataset, cell.method): cell for cell in study.cells}
        figure, axes = panels(of_pairs(cells), across=3, height=3.0)
        for pair, cell in cells.items():
            axis, labels = axes[pair], cell.arrays["labels"]
            axis.set_xticks([])
            axis.set_yticks([])
            agrees = cell.arrays.get("agrees", np.ones(len(labels), bool))
            for (marker, name), group in zip(MARKERS, (agrees, ~agrees), strict=True):
                for label in np.unique(labels[group]):
                    points = cell.arrays["map"][(labels == label) & group]
                    told = f"class {label}" + (f", {name}" if "agrees" in cell.arrays else "")
                    axis.scatter(*points.T, s=8, marker=marker, color=f"C{label}", linewidths=0.8, label=told)
        label_outer(axes.values(), x="t-SNE 1 (no unit)", y="t-SNE 2 (no unit)")
        legend_below(figure, columns=2)
        return figure


@hookimpl
def bench_register(register: Register) -> None:
    register(TSNE)
