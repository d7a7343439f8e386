"""An analysis for benchmarks/recorded/spmotif-hub.yaml: what the hubs of large wheels cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from harness import Analysis, Findings, Register, Study, hookimpl

if TYPE_CHECKING:
    from harness import MeasuredCell, TrainedCell
    from harness.graphs import Batch


class DegreeCap(Analysis):
    """Accuracy by base, as the network is, and when no node takes in more edges than any node of the training graphs.

    On SPMotif only the hub of a large wheel has more. Nothing is trained again, and no other node loses an edge.
    """

    name = "degree-cap"
    tasks = frozenset({"multiclass"})
    opens_test = True
    oracle_where_there = frozenset({"base"})

    def measure(self, cell: TrainedCell) -> dict[str, Any]:
        most = max(int(batch.indptr.diff().max()) for batch in cell.graphs(cell.train_split).batches(256))
        tests = (split for split in cell.splits if split not in (cell.train_split, *cell.validation_splits))
        return {"most": most, **{split: _answers(cell, split, most) for split in tests}}

    def present(self, study: Study) -> Findings:
        rows = []
        for (dataset, method), cells in study.groups().items():
            for split in cells[0].test_splits:
                for base in ("all", *range(cells[0].task.num_classes)):
                    per_seed = 100 * np.array([_accuracies(cell, split, base) for cell in cells])
                    spreads = per_seed.std(0, ddof=1) if len(cells) > 1 else (None, None)
                    plain, capped = zip(per_seed.mean(0), spreads, strict=True)
                    cap = cells[0].values["most"]
                    rows.append((dataset, method, split, base, *plain, cap, *capped, len(cells)))
        return Findings(
            (
                "dataset",
                "method",
                "split",
                "base",
                "accuracy, %",
                "s.d., %",
                "degree cap",
                "with it, %",
                "s.d., %",
                "seeds",
            ),
            tuple(rows),
            ("Cap: the largest number of edges that a node of the training graphs takes in.",),
        )


def _answers(cell: TrainedCell, split: str, most: int) -> np.ndarray[Any, Any]:
    """(n,) predicted classes of a split's graphs with capped degrees."""
    found = []
    with torch.no_grad():
        for batch in cell.graphs(split).batches(256):
            found.append(cell.learner(capped(batch, most)).argmax(1))
    return torch.cat(found).numpy()


def capped(batch: Batch, most: int) -> Batch:
    """Return the same nodes, each with its first incoming edges, ``most`` of them or fewer."""
    place = torch.arange(batch.num_edges) - batch.indptr[batch.edge_index[1]]
    return batch.keep_edges(place < most)


def _accuracies(cell: MeasuredCell, split: str, base: int | str) -> tuple[float, float]:
    """Accuracy on the graphs of a base (0, 1, 2, or all), as they are and with capped degrees."""
    labels = cell.labels(split)
    chosen = np.ones(len(labels), bool) if base == "all" else cell.oracle("base", split) == base
    answers = cell.logits(split).argmax(1), cell.arrays[split]
    plain, capped = (float((one == labels)[chosen].mean()) for one in answers)
    return plain, capped


@hookimpl
def bench_register(register: Register) -> None:
    """Register the analysis."""
    register(DegreeCap)
