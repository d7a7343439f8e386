"""The kept quantifiers' information: their scores on training and validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from harness import Analysis, Findings, Register, Study, hookimpl
from plugins.analyses._plots import colors, label_outer, legend_below, mean_and_spread, panels

if TYPE_CHECKING:
    from harness import TrainedCell


class Quantifiers(Analysis):
    """Training and validation score of every candidate quantifier, and which ones a method kept.

    A quantifier is meant to read what is spurious: a good score on training that falls on a validation split where the
    shortcut is weaker is what EQuAD keeps (Yao et al., *Empowering Graph Invariance Learning with Deep Spurious
    Infomax*, ICML 2024). A validation score as high as training's says that it read the label's own part.
    """

    name = "quantifiers"
    needs_pipeline = True

    def measure(self, cell: TrainedCell) -> dict[str, Any]:
        return {"candidates": cell.candidates, "split": cell.monitor}

    def present(self, study: Study) -> Findings:
        rows = []
        for (dataset, method), cells in study.groups().items():
            for kept in (True, False):
                chosen = [row for cell in cells for row in cell.values["candidates"] if row["kept"] == kept]
                scored = [row for row in chosen if row["train_score"] is not None and _score(row, cells[0]) is not None]
                if not scored:
                    continue
                train, train_spread = mean_and_spread([row["train_score"] for row in scored])
                val, val_spread = mean_and_spread([_score(row, cells[0]) for row in scored])
                name = "kept" if kept else "not kept"
                rows.append((dataset, method, name, len(chosen), train, train_spread, val, val_spread))
        return Findings(
            ("dataset", "method", "candidates", "number", "training", "s.d.", "validation", "s.d. "),
            tuple(rows),
            ("Scores are the task's metric; numbers and spreads are over seeds, encoders, snapshots and settings.",),
        )

    def figure(self, study: Study) -> Any:
        figure, axes = panels({dataset: dataset for dataset in study.datasets}, height=2.9, square=True)
        color = colors(cell.method for cell in study.cells)
        for cell in study.cells:
            rows = cell.values["candidates"]
            points = np.array([(row["train_score"], _score(row, cell)) for row in rows], dtype=float).reshape(-1, 2)
            kept = np.array([row["kept"] for row in rows], dtype=bool)
            axis, own = axes[cell.dataset], color[cell.method]
            axis.scatter(*points[kept].T, s=22, color=own, label=cell.method)
            axis.scatter(*points[~kept].T, s=22, facecolors="none", edgecolors=own)
        for axis in axes.values():
            low = min(*axis.get_xlim(), *axis.get_ylim()) - 0.01
            axis.plot(
                [low, 1], [low, 1], color="0.4", linestyle=":", linewidth=1, label="validation as training", zorder=0
            )
            axis.set_xlim(low, 1.02)
            axis.set_ylim(low, 1.02)
            axis.set_aspect("equal")
        label_outer(axes.values(), x="training score, a fraction\n(filled: kept)", y="validation score,\na fraction")
        legend_below(figure)
        return figure


def _score(row: dict[str, Any], cell: Any) -> Any:
    return row["scores"].get(cell.values["split"])


@hookimpl
def bench_register(register: Register) -> None:
    register(Quantifiers)
