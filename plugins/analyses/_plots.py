"""Common parts of the figures of analyses: panels wrapped to a page's width, labels said once, a legend below."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
PAGE = 6.9
"""Width of a figure in inches: the text width of most papers, so that the text in it keeps its size."""
LETTERS = 13.5
"""Letters of a panel's title that fit in an inch."""


def panels(
    titles: Mapping[Key, str], *, across: int = 2, height: float = 2.5, square: bool = False, **options: Any
) -> tuple[Any, dict[Key, Any]]:
    """A figure of one panel for each key, ``across`` in a row at most: (figure, {key: axes}).

    ``square`` is for axes of equal scales, which else would stand far apart.
    """
    from matplotlib.figure import Figure

    across = min(across, len(titles))
    down = -(-len(titles) // across)
    width = min(PAGE / across, 3.9)
    figure = Figure(figsize=(width * across, height * down), layout="compressed" if square else "constrained")
    grid = figure.subplots(down, across, squeeze=False, **options).ravel()
    for axes in grid[len(titles) :]:
        axes.remove()
    for axes, title in zip(grid, titles.values(), strict=False):
        axes.set_title("\n".join(fill(plain(line), int(width * LETTERS)) for line in title.splitlines()))
    return figure, dict(zip(titles, grid, strict=False))


def of_pairs(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Titles of panels for (dataset, method) pairs."""
    return {pair: "\n".join(pair) for pair in pairs}


def label_outer(axes: Iterable[Any], *, x: str = "", y: str = "") -> None:
    """Label each axis once for a row or column of panels: the y axis at the left, the x axis wherever none is below."""
    axes = list(axes)
    below = {axis.get_subplotspec().colspan.start: axis for axis in axes}
    for axis in axes:
        place = axis.get_subplotspec()
        if axis is below[place.colspan.start]:
            axis.set_xlabel(x)
        if place.is_first_col():
            axis.set_ylabel(y)


def legend_below(figure: Any, columns: int = 4) -> None:
    """One legend for all panels, with every entry that any of them has."""
    entries = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if entries:
        count = min(columns, len(entries))
        figure.legend(entries.values(), map(plain, entries), loc="outside lower center", ncols=count)


def at_least(limits: tuple[float, float], span: float) -> tuple[float, float]:
    """Limits of an axis that are ``span`` apart at least, so that differences without a meaning do not look large."""
    low, high = limits
    more = max(0.0, span - (high - low)) / 2
    return low - more, high + more


def plain(text: str) -> str:
    """A label as it is, without matplotlib's reading of dollars as formulas."""
    return text.replace("$", r"\$")


def mean_and_spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation; no spread of a single value."""
    import numpy as np

    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None


def colors(names: Iterable[str]) -> dict[str, str]:
    """A colour of the common palette for each name, the same in all panels."""
    return {name: f"C{place}" for place, name in enumerate(dict.fromkeys(names))}
