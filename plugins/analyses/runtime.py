"""The cost of each method: seconds and memory of its stages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from harness import Analysis, Cost, Findings, Register, Study, hookimpl
from plugins.analyses._plots import LINE, legend_above, panels, plain

KINDS = {
    "encode": "self-supervised encoder",
    "quantify": "quantifier",
    "annotate": "environment labels",
    "train": "training",
}


class Runtime(Analysis):
    """Seconds of processor time per training seed, by kind of stage, and the largest peaks of memory (also on GPUs).

    All stages that a method's cells build on count, of every configuration that was tried, divided by the number of
    seeds. A stage that several methods share, such as an encoder, counts in full for each: that is what the method
    would cost alone. Processor time is told, as wall time depends on what else the machine did; it needs one thread per
    worker, which is how stages run.
    """

    name = "runtime"
    measures = False

    def present(self, study: Study) -> Findings:
        rows = []
        on_gpu = any(cost.peak_device_memory for cost in study.costs)
        for (dataset, method), took in _costs(study).items():
            seconds = [_seconds(took, kind, study) for kind in KINDS]
            peak = _peak(cost.peak_memory for cost in took)
            there = (_peak(cost.peak_device_memory for cost in took),) if on_gpu else ()
            shared = sum(len({method for _, method, _ in cost.cells}) > 1 for cost in took if cost.kind != "prepare")
            unknown = sum(cost.cpu_seconds is None for cost in took if cost.kind in KINDS)
            rows.append((dataset, method, *seconds, sum(s or 0.0 for s in seconds), peak, *there, shared, unknown))
        peaks = ("peak, MB", *(["peak on GPU, MB"] if on_gpu else []))
        return Findings(
            (
                "dataset",
                "method",
                *(f"{name}, s" for name in KINDS.values()),
                "all, s",
                *peaks,
                "shared stages",
                "unknown",
            ),
            tuple(rows),
            ("Processor seconds per seed over all configurations; a dash: the method has no such stage.",),
        )

    def figure(self, study: Study) -> Any:
        costs = _costs(study)
        methods = list(dict.fromkeys(method for _, method in costs))
        titles = {dataset: dataset for dataset in study.datasets}
        height = 0.4 + 1.5 * LINE * len(methods)
        figure, axes = panels(titles, height=height, x="processor time per seed, s", sharey=True)
        for dataset, axis in axes.items():
            left = np.zeros(len(methods))
            for place, (kind, name) in enumerate(KINDS.items()):
                seconds = np.array([_seconds(costs.get((dataset, m), ()), kind, study) or 0.0 for m in methods])
                if seconds.any():
                    axis.barh(range(len(methods)), seconds, left=left, label=name, color=f"C{place}")
                left += seconds
            axis.set_yticks(range(len(methods)), map(plain, methods))
            axis.grid(visible=False, axis="y")
        next(iter(axes.values())).invert_yaxis()
        legend_above(figure)
        return figure


def _costs(study: Study) -> dict[tuple[str, str], list[Cost]]:
    """(dataset, method) -> every stage that its cells build on."""
    wanted = {(cell.dataset, cell.method) for cell in study.cells}
    found: dict[tuple[str, str], list[Cost]] = {pair: [] for pair in study.groups()}
    for cost in study.costs:
        for pair in dict.fromkeys((dataset, method) for dataset, method, _ in cost.cells):
            if pair in wanted:
                found[pair].append(cost)
    return found


def _seconds(took: Sequence[Cost], kind: str, study: Study) -> float | None:
    chosen = [cost.cpu_seconds or 0.0 for cost in took if cost.kind == kind]
    return sum(chosen) / len(study.results.seeds) if chosen else None


def _peak(values: Iterable[int | None]) -> float | None:
    """The largest number of bytes, in MB; None where none is known."""
    return max((value / 1e6 for value in values if value), default=None)


@hookimpl
def bench_register(register: Register) -> None:
    register(Runtime)
