"""Dimensions that the embeddings use: participation ratio (Gao et al., 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from harness import Analysis, Findings, Register, Study, hookimpl, hparam

if TYPE_CHECKING:
    from harness import TrainedCell


class NewComponent(Analysis):
    """Participation ratio of the embeddings' covariance, by method and split.

    The ratio (sum of eigenvalues)² / (sum of their squares) is 1 where all embeddings
    lie on a line and the width where they fill all directions alike. An analysis looks
    at cells that have been run. Say in this docstring what it asks, and the source.
    """

    name = "new-component"

    center: bool = hparam(True, help="subtract the mean embedding first")

    def measure(self, cell: TrainedCell) -> dict[str, float]:
        """Look at one cell, in a worker: arrays or plain values by name. Cached."""
        return {split: self.dimensions(cell, split) for split in cell.splits}

    def dimensions(self, cell: TrainedCell, split: str) -> float:
        """The participation ratio of a split; 0 where all eigenvalues are zero."""
        rows = cell.embeddings(split).astype(np.float64)
        centred = rows - rows.mean(0) if self.center else rows
        spectrum = np.linalg.eigvalsh(centred.T @ centred / len(centred))
        squares = float(np.square(spectrum).sum())
        return float(spectrum.sum()) ** 2 / squares if squares > 0 else 0.0

    def present(self, study: Study) -> Findings:
        """The table, from the answers of all cells."""
        rows = []
        for (dataset, method), cells in study.groups().items():
            for split in cells[0].splits:
                ratio = float(np.mean([cell.values[split] for cell in cells]))
                rows.append((dataset, method, split, ratio))
        notes = ("Mean over seeds; 1 is a line, the network's width is the most.",)
        columns = ("dataset", "method", "split", "dimensions used")
        return Findings(columns, tuple(rows), notes)


@hookimpl
def bench_register(register: Register) -> None:
    register(NewComponent)
