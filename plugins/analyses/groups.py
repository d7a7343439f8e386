"""A method's failures: its score by the test graphs' environments, size and base."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import Analysis, Findings, MeasuredCell, Register, Study, hookimpl, hparam
from plugins.analyses._plots import LINE, at_least, legend_above, of_splits, panels, percent, styles

Array = NDArray[Any]
Group = tuple[float, int | None]

DRAWN = 12
"""Groups of a figure; the table has all of them."""


class Groups(Analysis):
    """Accuracy on parts of the test split: per environment of the dataset, per quartile of graph size, and by the base.

    An average over a test split hides who pays for it; group accuracies are the usual remedy (Sagawa et al.,
    *Distributionally Robust Neural Networks for Group Shifts*, ICLR 2020). Sizes are numbers of nodes; quartiles are
    those of the split. Environments with few graphs are pooled, as their accuracy is mostly chance. Multi-task sets
    count each labelled task of each graph. Where the base graph is known, the graphs whose base goes with the label
    are one group, the others another, and each class of base is one.
    """

    name = "groups"
    measures = False
    opens_test = True
    oracle_where_there = frozenset({"base"})

    quartiles: int = hparam(4, low=2, help="parts by size, of about equal number of graphs")
    smallest: int = hparam(20, low=1, help="environments with fewer test graphs are pooled")

    def present(self, study: Study) -> Findings:
        rows, scores = [], self._scores(study)
        for (dataset, method, split), groups in scores.items():
            for group, (graphs, values) in groups.items():
                rows.append((dataset, method, split, group, graphs, *percent(values), len(values)))
        return Findings(
            ("dataset", "method", "split", "group", "graphs", "accuracy, %", "s.d. over seeds, %", "seeds"),
            tuple(rows),
            (
                "Accuracy on the group's graphs, or on its labelled tasks, at the reported checkpoint; the worst group "
                "is found for each seed. Whiskers: standard deviation over seeds.",
                *([f"The figure has the first {DRAWN} groups."] if max(map(len, scores.values())) > DRAWN else []),
            ),
        )

    def _scores(self, study: Study) -> dict[tuple[str, str, str], dict[str, tuple[int | None, list[float]]]]:
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
        titles = of_splits((dataset, split) for dataset, _, split in scores)
        methods = list(dict.fromkeys(method for _, method, _ in scores))
        most = min(DRAWN, max(map(len, scores.values())))
        height = 0.3 + LINE * (0.5 + 0.5 * len(methods)) * most
        figure, axes = panels(titles, across=1, height=height, x="test accuracy, %")
        style = styles(methods)
        for (dataset, split), axis in axes.items():
            shown = [method for method in methods if (dataset, method, split) in scores]
            names = list(scores[dataset, shown[0], split])[:DRAWN]
            for place, method in enumerate(shown):
                means, spreads = zip(*(percent(scores[dataset, method, split][name][1]) for name in names), strict=True)
                at = np.arange(len(names)) + (place - (len(shown) - 1) / 2) * 0.6 / len(shown)
                look = style[method] | {"linestyle": "none", "markersize": 3, "capsize": 1.5, "label": method}
                axis.errorbar(means, at, xerr=[spread or 0.0 for spread in spreads], **look)
            axis.set_yticks(range(len(names)), names)
            axis.grid(visible=False, axis="y")
            axis.invert_yaxis()
            axis.set_xlim(at_least(axis.get_xlim(), 10))
        legend_above(figure)
        return figure

    def _groups(self, cell: MeasuredCell, split: str) -> Iterator[tuple[str, Group]]:
        """Name of each group -> its accuracy and number of graphs; the worst of several has no number."""
        right, counted = _right(cell, split)

        def scored(masks: Iterable[tuple[str, Array]]) -> dict[str, Group]:
            return {name: (_share(right[mask], counted[mask]), int(mask.sum())) for name, mask in masks}

        environments = dict(self._environments(cell.environments(split)))
        pooled = scored((name, mask) for name, mask in environments.items() if "small" in name)
        kinds = {
            "environment": scored((name, mask) for name, mask in environments.items() if name not in pooled),
            "size group": scored(_size_groups(cell.num_nodes(split), self.quartiles)),
        }
        yield "all", (_share(right, counted), len(right))
        for kind, found in kinds.items():
            known = [share for share, _ in found.values() if not np.isnan(share)]
            if len(known) > 1:
                yield f"worst {kind}", (min(known), None)
        base = scored(_base_groups(cell.oracle("base", split), cell.labels(split)))
        yield from (kinds["size group"] | base | kinds["environment"] | pooled).items()

    def _environments(self, env: Array | None) -> Iterator[tuple[str, Array]]:
        """Name of each environment -> its graphs; the small ones are one, which comes last."""
        if env is None:
            return
        ids, counts = np.unique(env, return_counts=True)
        large = ids[counts >= self.smallest]
        yield from ((f"environment {number}", env == number) for number in large)
        rest = ~np.isin(env, large)
        if rest.any():
            yield f"{len(ids) - len(large)} small environments", rest


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
        yield f"{low} nodes" if low == high else f"{low}–{high} nodes", chosen


def _base_groups(base: Array | None, labels: Array) -> Iterator[tuple[str, Array]]:
    """Name -> mask, by whether the base goes with the label, and by the base."""
    if base is not None:
        if labels.ndim == 1:
            yield "base agrees", base == labels
            yield "base differs", base != labels
        yield from ((f"base {number}", base == number) for number in np.unique(base))


@hookimpl
def bench_register(register: Register) -> None:
    register(Groups)
