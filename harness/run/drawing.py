"""Draw an analysis's figure the same way everywhere: one style, colours that colour-blind readers can tell apart.

Importing this module imports matplotlib, which the extra ``figures`` brings.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler

FORMATS = ("svg", "pdf", "png")
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Okabe and Ito, *Color Universal Design*, 2008."""

STYLE: Any = {
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "legend.frameon": False,
    "figure.dpi": 100.0,
    "savefig.dpi": 200.0,
    "savefig.bbox": "tight",
    "svg.fonttype": "none",
    "svg.hashsalt": "bench",
    "pdf.fonttype": 42,
    "image.cmap": "viridis",
}


def draw(make: Callable[[], Any], folder: Path) -> tuple[str, ...]:
    """Make a figure under the common style and save it as SVG, PDF and PNG.

    Args:
        make: returns a ``matplotlib.figure.Figure``, or None for no figure.
        folder: where to write; made if need be.

    Returns:
        the files' names.
    """
    with mpl.rc_context(STYLE):
        figure = make()
        if figure is None:
            return ()
        folder.mkdir(parents=True, exist_ok=True)
        for suffix in FORMATS:
            figure.savefig(folder / f"figure.{suffix}", metadata=_without_date(suffix))
    return tuple(f"figure.{suffix}" for suffix in FORMATS)


def _without_date(suffix: str) -> dict[str, None] | None:
    """The same figure is the same file, whenever it is drawn."""
    return {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
