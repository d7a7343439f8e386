"""Central moment discrepancy between training and validation embeddings of one class (Zellinger et al., ICLR 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness import Analysis, Findings, Register, Study, hookimpl, hparam
from plugins.analyses._plots import legend_above, mean_and_spread, panels, styles

if TYPE_CHECKING:
    from harness import TrainedCell


class CentralMomentDiscrepancy(Analysis):
    """Distance of the embeddings of a class between training and validation; 0 for equal distributions.

    For samples X and Y in [a, b]^d, with c_k the vector of k-th central moments of each coordinate,

        CMD(X, Y) = |E X - E Y| / |b - a| + sum_{k=2..K} |c_k(X) - c_k(Y)| / |b - a|^k

    with Euclidean norms (Zellinger et al., *Central Moment Discrepancy (CMD) for Domain-Invariant Representation
    Learning*, ICLR 2017, Definition 2). a and b are the smallest and largest coordinate of both samples of all
    classes, so that networks with larger outputs are not farther apart for that alone. Embeddings are those of the
    final network at the reported checkpoint, in evaluation mode.
    """

    name = "cmd"
    tasks = frozenset({"binary", "multiclass"})
    probes = {"split": {"split": "train"}}

    moments: int = hparam(5, low=1, help="K, the highest moment")
    mean_term: bool = hparam(True, help="include the distance of the means")
    split: str | None = hparam(None, help="the split compared with training; none: the one that chose the checkpoint")

    def measure(self, cell: TrainedCell) -> dict[str, Any]:
        split = self.split or cell.monitor
        train, other = cell.embeddings(cell.train_split), cell.embeddings(split)
        y_train, y_other = cell.labels(cell.train_split), cell.labels(split)
        low, high = min(train.min(), other.min()), max(train.max(), other.max())
        per_class = {
            str(label): self.distance(train[y_train == label], other[y_other == label], float(high - low))
            for label in range(cell.task.num_classes)
            if min((y_train == label).sum(), (y_other == label).sum()) > 1
        }
        return {"split": split, "classes": per_class}

    def distance(self, x: NDArray[Any], y: NDArray[Any], width: float) -> float:
        """CMD of two samples (n, d) and (m, d) whose coordinates lie in an interval of this width."""
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if width == 0.0:
            return 0.0
        means = x.mean(0), y.mean(0)
        total = float(np.linalg.norm(means[0] - means[1])) / width if self.mean_term else 0.0
        centred = (x - means[0]) / width, (y - means[1]) / width
        for k in range(2, self.moments + 1):
            total += float(np.linalg.norm((centred[0] ** k).mean(0) - (centred[1] ** k).mean(0)))
        return total

    def present(self, study: Study) -> Findings:
        rows = []
        for (dataset, method), cells in study.groups().items():
            for label in cells[0].values["classes"]:
                mean, spread = mean_and_spread([cell.values["classes"][label] for cell in cells])
                rows.append((dataset, method, f"class {label}", mean, spread, len(cells)))
            averages = [float(np.mean(list(cell.values["classes"].values()))) for cell in cells]
            mean, spread = mean_and_spread(averages)
            rows.append((dataset, method, "mean over classes", mean, spread, len(cells)))
        splits = ", ".join(dict.fromkeys(str(cell.values["split"]) for cell in study.cells))
        return Findings(
            ("dataset", "method", "class", "CMD", "s.d. over seeds", "seeds"),
            tuple(rows),
            (
                f"Training against {splits}; moments up to {self.moments}. Smaller is closer; compare "
                "networks of one width only. Whiskers: standard deviation over seeds.",
            ),
        )

    def figure(self, study: Study) -> Any:
        titles = {dataset: dataset for dataset in study.datasets}
        figure, axes = panels(titles, x="class", y="CMD", sharey=True)
        groups = study.groups()
        style = styles(method for _, method in groups)
        for dataset, axis in axes.items():
            methods = [method for name, method in groups if name == dataset]
            for place, method in enumerate(methods):
                cells = groups[dataset, method]
                labels = list(cells[0].values["classes"])
                values = np.array([[cell.values["classes"][label] for label in labels] for cell in cells])
                shift = (place - (len(methods) - 1) / 2) * 0.8 / len(methods)
                spread = values.std(0, ddof=1) if len(cells) > 1 else None
                at, width = np.arange(len(labels)) + shift, 0.8 / len(methods)
                axis.bar(at, values.mean(0), width, yerr=spread, capsize=2, label=method, color=style[method]["color"])
            axis.set_xticks(range(len(labels)), labels)
            axis.grid(visible=False, axis="x")
        legend_above(figure)
        return figure


@hookimpl
def bench_register(register: Register) -> None:
    register(CentralMomentDiscrepancy)
