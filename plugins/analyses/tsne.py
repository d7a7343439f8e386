"""A map of the embeddings: t-SNE (van der Maaten and Hinton, JMLR 2008)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness import Analysis, Findings, MeasuredCell, Register, Study, UserError, hookimpl, hparam
from plugins.analyses._plots import legend_above, of_pairs, panels, size, wrapped

if TYPE_CHECKING:
    from harness import TrainedCell

BY = ("class", "base", "agreement")
HEIGHT = 1.2


class TSNE(Analysis):
    """Two-dimensional map of graph embeddings by class and, of sets with a known base, by base and by their agreement.

    With scikit-learn's t-SNE (van der Maaten and Hinton, *Visualizing Data using t-SNE*, JMLR 2008), started from the
    first two principal components. Distances between clusters and their sizes mean nothing. One seed, as a map cannot
    be averaged. The base is the spurious attribute; it agrees where it is the one that goes with the label.

    The table has a number that does not depend on the map: how often a graph's nearest neighbours in embedding space
    carry its label, and how often they agree with it on the base.
    """

    name = "tsne"
    tasks = frozenset({"binary", "multiclass"})
    first_seeds = 1
    oracle_where_there = frozenset({"base"})
    probes = {
        "*": {"graphs": 10},
        "by": {"by": "class"},
        "split": {"split": "train"},
        "perplexity": {"perplexity": 2.0},
    }

    by: str = hparam("all", choices=("all", *BY), help="what the colours of the figure tell")
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
            found["base"] = base
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
            shares = cell.values["same_label"], cell.values.get("same_base")
            near = (None if share is None else 100 * share for share in shares)
            rows.append((cell.dataset, cell.method, cell.seed, cell.values["split"], len(cell.arrays["labels"]), *near))
        return Findings(
            ("dataset", "method", "seed", "split", "graphs", "neighbours of its class, %", "of its base, %"),
            tuple(rows),
            (f"Shares of each graph's {self.neighbours} nearest neighbours among the embeddings ({self.source}).",),
        )

    def figure(self, study: Study) -> Any:
        cells = {(cell.dataset, cell.method): cell for cell in study.cells}
        named = of_pairs(cells)
        maps = {(pair, by): groups for pair in cells for by, groups in self._coloured(cells[pair]).items()}
        if not maps:
            raise UserError(f"no chosen dataset has a base to colour by ('by: {self.by}')")
        shown = list(dict.fromkeys(by for _, by in maps))
        rows = len(maps) == len(shown) * len(cells) and len(shown) > 1  # a method in each, its name said once
        by_method = {(pair, by): named[pair] + (f"\nby {by}" if len(shown) > 1 else "") for pair, by in maps}
        top = list(cells)[: size(by_method, 3)[0] // len(shown)]
        titles = {(pair, by): f"by {by}" if pair in top else "" for pair, by in maps} if rows else by_method
        figure, axes = panels(titles, across=3, height=HEIGHT)
        for (pair, by), axis in axes.items():
            axis.set_xticks([])
            axis.set_yticks([])
            if rows and by == shown[0]:
                axis.set_ylabel(wrapped(named[pair], HEIGHT))
            for label, (color, chosen) in maps[pair, by].items():
                points = cells[pair].arrays["map"][chosen]
                axis.scatter(*points.T, s=3, color=color, linewidths=0, label=label, rasterized=True)
        legend_above(figure, columns=len(shown) if rows else None, scale=3)
        return figure

    def _coloured(self, cell: MeasuredCell) -> dict[str, dict[str, tuple[str, NDArray[Any]]]]:
        """What the colours tell -> name of each group -> its colour and the mask of its graphs."""
        labels, base = cell.arrays["labels"], cell.arrays.get("base")
        found = {"class": {f"class {label}": (f"C{label}", labels == label) for label in np.unique(labels)}}
        if base is not None:
            found["base"] = {f"base {number}": (f"C{number}", base == number) for number in np.unique(base)}
            found["agreement"] = {"base agrees": ("0.7", base == labels), "base differs": ("k", base != labels)}
        return {by: groups for by, groups in found.items() if self.by in ("all", by)}


@hookimpl
def bench_register(register: Register) -> None:
    register(TSNE)
