"""Learning curves of all methods: training loss and validation score after each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness import Analysis, Findings, MeasuredCell, Register, Study, hookimpl
from plugins.analyses._plots import legend_above, mean_and_spread, panels, percent, split_name, styles

LOSS = "loss"


class Curves(Analysis):
    """Training loss and validation score of the selected configurations after each epoch: mean and range over seeds.

    Losses of different methods are different functions, of which the shape can be compared and the height cannot.
    There is no test curve: training reads no test split, so that test scores of epochs do not exist.
    """

    name = "curves"
    measures = False

    def present(self, study: Study) -> Findings:
        rows = []
        for (dataset, method), cells in study.groups().items():
            for series in _series(cells):
                known = [values for cell in cells if (values := _finite(cell, series)) is not None]
                if series == LOSS or not known:
                    continue
                epochs = mean_and_spread([float(np.nanargmax(values)) + 1 for values in known])[0]
                best, last = (percent([float(take(v)) for v in known])[0] for take in (np.nanmax, _last))
                split = series.removeprefix("score/")
                rows.append((dataset, method, split, len(known), best, epochs, last))
        return Findings(
            ("dataset", "method", "split", "seeds", "best, %", "after epoch", "last, %"),
            tuple(rows),
            ("Means over seeds of the best and the last validation score. Bands: range over seeds.",),
        )

    def figure(self, study: Study) -> Any:
        groups = study.groups()
        keys = dict.fromkeys((pair[0], series) for pair, cells in groups.items() for series in _series(cells))
        if not keys:
            return None
        several = len(study.datasets) > 1
        titles = {key: key[0] if several else "" for key in keys}
        style = styles(method for _, method in groups)
        figure, axes = panels(titles, height=1.4, x="epoch")
        for (dataset, series), axis in axes.items():
            axis.locator_params(axis="x", integer=True)
            for (name, method), cells in groups.items():
                if name == dataset:
                    _draw(axis, cells, series, style[method], method)
            if series != LOSS:
                axis.set_ylabel(f"{split_name(series.removeprefix('score/'))}\n{study.metric}, %")
                continue
            axis.set_ylabel("training loss")
            low, high = axis.dataLim.intervaly
            if 0 < 20 * low < high:
                axis.set_yscale("log")
        legend_above(figure)
        return figure


def _series(cells: Sequence[MeasuredCell]) -> list[str]:
    names = [LOSS, *(f"score/{split}" for split, role in cells[0].splits.items() if role == "val")]
    return [name for name in names if any(_finite(cell, name) is not None for cell in cells)]


def _finite(cell: MeasuredCell, series: str) -> Any:
    """(E,) values after each epoch; None where none is finite."""
    values = cell.history(series)
    return None if values is None or not np.isfinite(values).any() else values


def _last(values: Any) -> Any:
    return values[np.isfinite(values)][-1]


def _draw(axis: Any, cells: Sequence[MeasuredCell], series: str, style: dict[str, str], method: str) -> None:
    """Draw mean and band over the seeds that came so far; early stopping ends them at different epochs."""
    found = [values for cell in cells if (values := _finite(cell, series)) is not None]
    if not found:
        return
    table = np.full((len(found), max(map(len, found))), np.nan)
    for row, values in zip(table, found, strict=True):
        row[: len(values)] = values
    scores = np.ma.masked_invalid(table if series == LOSS else 100 * table)
    mean, epochs = scores.mean(0), np.arange(1, table.shape[1] + 1)
    axis.plot(epochs, mean, color=style["color"], linestyle=style["linestyle"], label=method)
    if len(found) > 1:
        axis.fill_between(epochs, scores.min(0), scores.max(0), color=style["color"], alpha=0.2, linewidth=0)


@hookimpl
def bench_register(register: Register) -> None:
    register(Curves)
