"""What the figures of several analyses share: one panel per dataset, labelled axes, a legend beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PANEL = (3.4, 2.6)
"""Width and height of one panel in inches."""


def panels(titles: Sequence[str], *, rows: Sequence[str] = ("",), size: tuple[float, float] = PANEL, **options: Any):
    """A figure with a row of axes for each of ``rows`` and a column for each title: (figure, {(row, title): axes})."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] * len(titles), size[1] * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), len(titles), squeeze=False, **options)
    found = {}
    for place, row in enumerate(rows):
        for column, title in enumerate(titles):
            axes = grid[place][column]
            axes.set_title(" · ".join(filter(None, [title, row])))
            found[row, title] = axes
    return figure, found


def legend_below(figure: Any, axes: Any, columns: int = 4) -> None:
    """One legend for all panels, from the entries of one of them."""
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)))


def mean_and_spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation; no spread of a single value."""
    import numpy as np

    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None
