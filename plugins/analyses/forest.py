"""A forest plot of the table: every row's mean with its confidence interval."""

from __future__ import annotations

from typing import Any

from harness import Analysis, Findings, Register, Study, hookimpl
from plugins.analyses._plots import LINE, at_least, of_splits, panels, plain


class Forest(Analysis):
    """Mean test score of every row of the table and its 95 % confidence interval over seeds, a panel for each dataset.

    A forest plot (Lewis and Clarke, *Forest plots: trying to see the wood and the trees*, BMJ 2001). The intervals are
    those of the report's statistics: mean ± t(n - 1) · s / √n. Two rows whose intervals overlap may still differ, as
    seeds are paired: the report's differences to the reference say that. A dotted line continues the reference.
    """

    name = "forest"
    measures = False

    def present(self, study: Study) -> Findings:
        rows = [
            (row.dataset, row.split, row.method, found.estimate, found.low, found.high, found.n)
            for row, found in study.intervals()
        ]
        return Findings(
            ("dataset", "split", "method", "mean, %", "95 % from, %", "to, %", "seeds"),
            tuple(rows),
            ("Intervals over seeds by Student's t; a dash: one seed, or equal values.",),
        )

    def figure(self, study: Study) -> Any:
        found = study.intervals()
        methods = list(dict.fromkeys(row.method for row, _ in found))
        titles = of_splits((row.dataset, row.split) for row, _ in found)
        height = 0.4 + LINE * len(methods)
        figure, axes = panels(titles, height=height, x=f"test {study.metric}, %", sharey=True)
        for row, interval in found:
            axis, mean, at = axes[row.dataset, row.split], interval.estimate, methods.index(row.method)
            if mean is None:
                continue
            axis.plot(mean, at, "o", color="C0", markersize=3)
            if interval.low is not None:
                axis.plot((interval.low, interval.high), (at, at), color="C0")
            if row.method == study.results.reference:
                axis.axvline(mean, color="0.4", linestyle=":", linewidth=1, zorder=0)
        first = next(iter(axes.values()))
        first.set_yticks(range(len(methods)), map(plain, methods))
        first.set_ylim(len(methods) - 0.5, -0.5)
        for axis in axes.values():
            axis.grid(visible=False, axis="y")
            axis.set_xlim(at_least(axis.get_xlim(), 5))
        return figure


@hookimpl
def bench_register(register: Register) -> None:
    register(Forest)
