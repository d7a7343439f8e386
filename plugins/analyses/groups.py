"""Where a method fails: its score by the test graphs' environments and by their size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness import Analysis, Findings, MeasuredCell, Study, hookimpl, hparam


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
        rows = []
        for (dataset, method), cells in study.groups().items():
            for split in cells[0].test_splits:
                per_seed = [dict(self._groups(cell, split)) for cell in cells]
                for group in per_seed[0]:
                    values = [found[group][0] for found in per_seed]
                    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
                    mean = float(np.mean(values))
                    rows.append((dataset, method, split, group, per_seed[0][group][1], mean, spread, len(values)))
        return Findings(
            ("dataset", "method", "split", "group", "graphs", "accuracy", "s.d. over seeds", "seeds"),
            tuple(rows),
            ("Accuracy is a fraction of the group's graphs, or of its labelled tasks, at the reported checkpoint.",),
        )

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


def _right(cell: MeasuredCell, split: str):
    """(n,) correct answers of each graph, and how many were asked."""
    logits, labels = cell.logits(split), cell.labels(split)
    if cell.task.kind != "multitask":
        return (logits.argmax(1) == labels).astype(float), np.ones(len(labels))
    known = ~np.isnan(labels)
    return ((logits > 0) == (labels > 0.5)).astype(float).sum(1, where=known), known.sum(1).astype(float)


def _share(right, counted) -> float:
    total = counted.sum()
    return float(right.sum() / total) if total else float("nan")


def _size_groups(sizes, parts: int):
    """Name -> mask of each part; graphs of one size are never separated, so parts may differ in number."""
    cuts = np.unique(np.quantile(sizes, np.linspace(0, 1, parts + 1)[1:-1], method="lower"))
    place = np.searchsorted(cuts, sizes, side="left")
    for number in np.unique(place):
        chosen = place == number
        yield f"{sizes[chosen].min()} to {sizes[chosen].max()} nodes", chosen


@hookimpl
def bench_register(register):
    register(Groups)
