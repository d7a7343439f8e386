"""Common parts of the figures of analyses: panels at a column's width, labels said once, a legend above."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import cycle
from textwrap import fill
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
COLUMN, PAGE = 3.3, 6.9
"""Widths of figures in inches, those of one and of both columns of most papers, so that text keeps its size."""
LETTERS = 17
"""Letters of a title or a legend that fit in an inch."""
LINE = 0.14
"""Height of a line of text in inches."""
WORDS = {"val": "validation", "id": "ID", "iid": "IID", "ood": "OOD"}
MARKERS = "osD^vPX*"
DASHES = ("-", "--", ":", "-.")


def size(titles: Mapping[Key, str], across: int = 2, height: float = 1.3) -> tuple[int, float, float]:
    """Panels in a row, and width and height of their figure; more than three rows of panels span both columns."""
    wide = len(titles) > 3 * across
    across = min(2 * across if wide else across, len(titles))
    width = PAGE if wide else COLUMN
    lines = max(len(wrapped(title, width / across).splitlines()) for title in titles.values())
    return across, width, -(-len(titles) // across) * (height + LINE * lines)


def panels(
    titles: Mapping[Key, str],
    *,
    across: int = 2,
    height: float = 1.3,
    x: str = "",
    y: str = "",
    figure: Any = None,
    **options: Any,
) -> tuple[Any, dict[Key, Any]]:
    """A figure, or the given part of one, of one panel for each key: (figure, {key: axes}).

    Args:
        across: panels in a row of a column's width.
        height: of a panel without its title, in inches.
        x, y: labels of the axes of all panels.
    """
    from matplotlib.figure import Figure

    across, width, total = size(titles, across, height)
    figure = figure or Figure(figsize=(width, total + LINE * bool(x)), layout="constrained")
    grid = figure.subplots(-(-len(titles) // across), across, squeeze=False, **options).ravel()
    for axes in grid[len(titles) :]:
        axes.remove()
    for axes, title in zip(grid, titles.values(), strict=False):
        axes.set_title(wrapped(title, width / across))
    figure.supxlabel(x)
    figure.supylabel(y)
    return figure, dict(zip(titles, grid, strict=False))


def wrapped(title: str, width: float) -> str:
    """A text in lines that fit in so many inches."""
    return "\n".join(fill(plain(line), int(width * LETTERS)) for line in title.strip().splitlines())


def of_pairs(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Titles of panels for (dataset, method) pairs: what they differ in."""
    pairs = list(pairs)
    differs = [len(set(names)) > 1 for names in zip(*pairs, strict=True)]
    return {pair: "\n".join(name for name, told in zip(pair, differs, strict=True) if told) for pair in pairs}


def of_splits(keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Titles of panels for (dataset, split) pairs; the split of a dataset that has one alone is left out."""
    keys = list(dict.fromkeys(keys))
    datasets = [dataset for dataset, _ in keys]
    return {key: key[0] if datasets.count(key[0]) == 1 else f"{key[0]}\n{split_name(key[1])}" for key in keys}


def split_name(split: str) -> str:
    """A split in words: ``OOD test`` for ``ood_test``."""
    return " ".join(WORDS.get(word, word) for word in split.split("_"))


def legend_above(figure: Any, columns: int | None = None, scale: float = 1.0) -> None:
    """One legend for all panels, with every entry that any of them has, in as many columns as fit.

    It stands above, as a common label of the axes stands below.
    """
    entries = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if not entries:
        return
    root = figure.get_figure(root=True)
    fit = int(root.get_figwidth() * LETTERS) // (max(map(len, entries)) + 7)
    columns = min(columns or max(1, fit), len(entries))
    place = {"loc": "outside upper center", "ncols": columns, "columnspacing": 1.2, "markerscale": scale}
    figure.legend(entries.values(), map(plain, entries), **place)
    root.set_figheight(root.get_figheight() + LINE * -(-len(entries) // columns))


def at_least(limits: tuple[float, float], span: float) -> tuple[float, float]:
    """Limits of an axis of percents that are ``span`` apart at least, so that small differences do not look large."""
    low, high = limits
    more = max(0.0, span - (high - low)) / 2
    over = max(0.0, high + more - 101)
    return low - more - over, high + more - over


def plain(text: str) -> str:
    """A label as it is, without matplotlib's reading of dollars as formulas."""
    return text.replace("$", r"\$")


def mean_and_spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation; no spread of a single value."""
    import numpy as np

    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None


def percent(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation of fractions, in percent; None without values."""
    return mean_and_spread([100 * value for value in values]) if values else (None, None)


def styles(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """A colour, a marker and a dash of each name's line; beyond eight names colours come again with another dash."""
    looks = [
        {"color": f"C{n}", "marker": marker, "linestyle": dash} for dash in DASHES for n, marker in enumerate(MARKERS)
    ]
    return dict(zip(dict.fromkeys(names), cycle(looks), strict=False))
