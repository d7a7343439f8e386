"""A method's failures: its score by the test graphs' environments and by their size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import Analysis, Findings, MeasuredCell, Register, Study, hookimpl, hparam
from plugins.analyses._plots import at_least, colors, label_outer, legend_below, mean_and_spread, panels

Array = NDArray[Any]

MARKERS = "osD^vPX*"
DRAWN = 12
"""Groups of a figure; the table has all of them."""


class Groups(Analysis):
    """Accuracy on parts of the test split: per environment of the dataset, and per quartile of graph size.

    An average over a test split hides who pays for it; group accuracies are the usual remedy (Sagawa et al.,
    *Distributionally Robust Neural Networks for Group Shifts*, ICLR 2020). Sizes are numbers of nodes; quartiles are
    those of the split. Environments with few graphs are pooled, as their accuracy is mostly chance. Multi-task sets
    count each labelled task of each graph.
    """

    name = "groups"
    measures = False
    opens_test = True

    quartiles: int = hparam(4, low=2, help="parts of equal number of graphs by size")
    smallest: int = hparam(20, low=1, help="environments with fewer test graphs are pooled")

    def present(self, study: Study) -> Findings:
        rows, scores = [], self._scores(study)
        for (dataset, method, split), groups in scores.items():
            for group, (graphs, values) in groups.items():
                mean, spread = mean_and_spread(values)
                rows.append((dataset, method, split, group, graphs, mean, spread, len(values)))
        return Findings(
            ("dataset", "method", "split", "group", "graphs", "accuracy", "s.d. over seeds", "seeds"),
            tuple(rows),
            (
                "Accuracy is a fraction of the group's graphs, or of its labelled tasks, at the reported checkpoint. "
                "Whiskers: standard deviation over seeds.",
                *([f"The figure has the first {DRAWN} groups."] if max(map(len, scores.values())) > DRAWN else []),
            ),
        )

    def _scores(self, study: Study) -> dict[tuple[str, str, str], dict[str, tuple[int, list[float]]]]:
        """(dataset, method, test split) -> group -> its number of graphs, and its accuracy for each seed."""
        found = {}
        for (dataset, method), cells in study.groups().items():
            for split in cells[0].test_splits:
                per_seed = [dict(self._groups(cell, split)) for cell in cells]
                found[dataset, method, split] = {
                    group: (graphs, [one[group][0] for one in per_seed]) for group, (_, graphs) in per_seed[0].items()
                }
        return found

    def figure(self, study: Study) -> Any:
        scores = self._scores(study)
        splits = list(dict.fromkeys((dataset, split) for dataset, _, split in scores))
        several = {dataset for dataset, _ in splits if sum(name == dataset for name, _ in splits) > 1}
        titles = {key: key[0] + (f"\n{key[1]}" if key[0] in several else "") for key in splits}
        methods = list(dict.fromkeys(method for _, method, _ in scores))
        most = min(DRAWN, max(map(len, scores.values())))
        figure, axes = panels(titles, height=1.2 + (0.12 + 0.08 * len(methods)) * most)
        color = colors(methods)
        for (dataset, split), axis in axes.items():
            shown = [method for method in methods if (dataset, method, split) in scores]
            names = list(scores[dataset, shown[0], split])[:DRAWN]
            for place, method in enumerate(shown):
                found = [mean_and_spread(scores[dataset, method, split][name][1]) for name in names]
                at = np.arange(len(names)) + (place - (len(shown) - 1) / 2) * 0.6 / len(shown)
                spread, marker = [spread or 0.0 for _, spread in found], MARKERS[methods.index(method) % len(MARKERS)]
                means = [mean for mean, _ in found]
                style = {"fmt": marker, "markersize": 4, "capsize": 2, "color": color[method], "label": method}
                axis.errorbar(means, at, xerr=spread, **style)
            axis.set_yticks(range(len(names)), names)
            axis.grid(visible=False, axis="y")
            axis.invert_yaxis()
            axis.set_xlim(at_least(axis.get_xlim(), 0.1))
        label_outer(axes.values(), x="accuracy, a fraction")
        legend_below(figure)
        return figure

    def _groups(self, cell: MeasuredCell, split: str) -> Iterator[tuple[str, tuple[float, int]]]:
        """Name of each group -> its accuracy and number of graphs."""
        right, counted = _right(cell, split)
        yield "all", (_share(right, counted), len(right))
        sizes = cell.num_nodes(split)
        for name, chosen in _size_groups(sizes, self.quartiles):
            yield name, (_share(right[chosen], counted[chosen]), int(chosen.sum()))
        env = cell.environments(split)
        if env is None:
            return
        ids, counts = np.unique(env, return_counts=True)
        large = ids[counts >= self.smallest]
        for number in large:
            chosen = env == number
            yield f"environment {number}", (_share(right[chosen], counted[chosen]), int(chosen.sum()))
        rest = ~np.isin(env, large)
        if rest.any():
            name = f"{len(ids) - len(large)} small environments"
            yield name, (_share(right[rest], counted[rest]), int(rest.sum()))


def _right(cell: MeasuredCell, split: str) -> tuple[Array, Array]:
    """(n,) correct answers of each graph, and how many were asked."""
    logits, labels = cell.logits(split), cell.labels(split)
    if cell.task.kind != "multitask":
        return (logits.argmax(1) == labels).astype(float), np.ones(len(labels))
    known = ~np.isnan(labels)
    return ((logits > 0) == (labels > 0.5)).astype(float).sum(1, where=known), known.sum(1).astype(float)


def _share(right: Array, counted: Array) -> float:
    total = counted.sum()
    return float(right.sum() / total) if total else float("nan")


def _size_groups(sizes: Array, parts: int) -> Iterator[tuple[str, Array]]:
    """Name -> mask of each part; graphs of one size are never separated, so parts may differ in number."""
    cuts = np.unique(np.quantile(sizes, np.linspace(0, 1, parts + 1)[1:-1], method="lower"))
    place = np.searchsorted(cuts, sizes, side="left")
    for number in np.unique(place):
        chosen = place == number
        low, high = sizes[chosen].min(), sizes[chosen].max()
        yield f"{low} nodes" if low == high else f"{low} to {high} nodes", chosen


@hookimpl
def bench_register(register: Register) -> None:
    register(Groups)
