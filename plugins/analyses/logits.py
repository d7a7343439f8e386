"""The kept quantifiers' votes: the probability of a training graph's own label, by class and group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness import Analysis, Findings, MeasuredCell, Register, Study, hookimpl
from plugins.analyses._plots import legend_above, of_pairs, panels

if TYPE_CHECKING:
    from harness import TrainedCell

AGREES, DIFFERS = "base agrees", "base differs"


class Logits(Analysis):
    """Distribution of s_iy, the probability that the quantifiers give to the label of training graph i.

    On sets with a known base graph the graphs of each class fall into two groups: those whose base goes with the label,
    and the others. Where the quantifiers read the base, s_iy is near one in the first group and near zero in the
    second, and that is what decorrelation needs (Yao et al., *Empowering Graph Invariance Learning with Deep Spurious
    Infomax*, ICML 2024). s_iy is averaged over the kept quantifiers.
    """

    name = "logits"
    tasks = frozenset({"binary", "multiclass"})
    needs_pipeline = True
    oracle_where_there = frozenset({"base"})

    def measure(self, cell: TrainedCell) -> dict[str, Any]:
        labels = cell.labels(cell.train_split)
        votes = cell.spurious.mean(1)[np.arange(len(labels)), labels]
        found: dict[str, Any] = {"votes": votes, "labels": labels}
        if "base" in cell.oracle_fields:
            found["agrees"] = cell.oracle("base", cell.train_split) == labels
        return found

    def present(self, study: Study) -> Findings:
        rows = []
        for (dataset, method), cells in study.groups().items():
            for label, group, values in _groups(cells):
                low, middle, high = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
                row = (dataset, method, label, group, len(values), float(values.mean()), low, middle, high)
                rows.append(row)
        return Findings(
            ("dataset", "method", "class", "group", "graphs", "mean s_iy", "25 %", "median", "75 %"),
            tuple(rows),
            ("Training graphs of all seeds together. Boxes: quartiles; whiskers: 1.5 times their distance at most.",),
        )

    def figure(self, study: Study) -> Any:
        groups = study.groups()
        label = "probability of the\ngraph's own label, $s_{iy}$"
        figure, axes = panels(of_pairs(groups), x="class", y=label, sharey=True)
        for pair, axis in axes.items():
            found = list(_groups(groups[pair]))
            names = list(dict.fromkeys(group for _, group, _ in found))
            for place, name in enumerate(names):
                chosen = [(label, values) for label, group, values in found if group == name]
                shift = (place - (len(names) - 1) / 2) * 0.36
                boxes = axis.boxplot(
                    [values for _, values in chosen],
                    positions=[label + shift for label, _ in chosen],
                    widths=0.3,
                    patch_artist=True,
                    showfliers=False,
                    label=name,
                    medianprops={"color": "black"},
                )
                for box in boxes["boxes"]:
                    box.set_facecolor(f"C{place}")
            labels = sorted({label for label, _, _ in found})
            axis.set_xticks(labels, [str(label) for label in labels])
            axis.set_ylim(-0.03, 1.03)
            axis.grid(visible=False, axis="x")
        legend_above(figure)
        return figure


def _groups(cells: Sequence[MeasuredCell]) -> Iterator[tuple[int, str, Any]]:
    """(class, group, s_iy of its graphs), seeds together; groups without a graph are left out."""
    votes = np.concatenate([cell.arrays["votes"] for cell in cells])
    labels = np.concatenate([cell.arrays["labels"] for cell in cells])
    known = all("agrees" in cell.arrays for cell in cells)
    agrees = np.concatenate([cell.arrays["agrees"] for cell in cells]) if known else np.ones(len(labels), bool)
    for label in np.unique(labels):
        for name, chosen in ((AGREES if known else "all", agrees), (DIFFERS, ~agrees)):
            values = votes[(labels == label) & chosen]
            if len(values):
                yield int(label), name, values


@hookimpl
def bench_register(register: Register) -> None:
    register(Logits)
