"""The kept quantifiers' information: their scores on training and validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from harness import Analysis, Findings, Register, Study, hookimpl
from plugins.analyses._plots import legend_above, panels, percent, styles

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
                train = percent([row["train_score"] for row in scored])
                validation = percent([_score(row, cells[0]) for row in scored])
                rows.append((dataset, method, "kept" if kept else "not kept", len(chosen), *train, *validation))
        return Findings(
            ("dataset", "method", "candidates", "number", "training, %", "s.d., %", "validation, %", "its s.d., %"),
            tuple(rows),
            ("Scores are the task's metric; numbers and spreads are over seeds, encoders, snapshots and settings.",),
        )

    def figure(self, study: Study) -> Any:
        titles = {dataset: dataset for dataset in study.datasets}
        x, y = (f"{split} {study.metric}, %" for split in ("training", "validation"))
        figure, axes = panels(titles, height=1.6, x=x, y=y, sharex=True, sharey=True)
        style = styles(cell.method for cell in study.cells)
        for cell in study.cells:
            rows = cell.values["candidates"]
            pairs = [(row["train_score"], _score(row, cell)) for row in rows]
            points = 100 * np.array(pairs, dtype=float).reshape(-1, 2)
            kept = np.array([row["kept"] for row in rows], dtype=bool)
            axis, own = axes[cell.dataset], style[cell.method]["color"]
            axis.scatter(*points[kept].T, s=12, color=own, label=cell.method)
            if not kept.all():
                axis.scatter(
                    *points[~kept].T, s=12, facecolors="none", edgecolors=own, label=f"{cell.method}, not kept"
                )
        for axis in axes.values():
            axis.axline((100, 100), slope=1, color="0.4", linestyle=":", linewidth=1, label="validation as training")
            axis.set_xlim(right=101)
            axis.set_ylim(top=101)
        legend_above(figure)
        return figure


def _score(row: dict[str, Any], cell: Any) -> Any:
    return row["scores"].get(cell.values["split"])


@hookimpl
def bench_register(register: Register) -> None:
    register(Quantifiers)
