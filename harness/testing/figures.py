"""Draws an analysis's figure as a run does, and looks whether its axes are labelled."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.analysis import Analysis, Study
from harness.testing.report import Skip


def drawn(analysis: Analysis, study: Study) -> bytes | None:
    """The figure as SVG, under the style of a run's figures; None for no figure, or without matplotlib.

    Raises:
        Warning: drawing warns of something.
    """
    if type(analysis).figure is Analysis.figure:
        return None
    try:
        return _draw(analysis, study)[1]
    except Skip:
        return None


def made(analysis: Analysis, study: Study) -> Any:
    """The figure, not drawn yet; None for none, or without matplotlib."""
    try:
        with _styled():
            return analysis.figure(study)
    except Skip:
        return None


def problems(analysis: Analysis, study: Study) -> Iterator[str]:
    """What is wrong with the figure of a study.

    Raises:
        Skip: matplotlib is missing.
    """
    before = _open_figures()
    figure, _ = _draw(analysis, study)
    if _open_figures() != before:
        yield "figure() leaves figures open in pyplot: make a matplotlib.figure.Figure"
    if figure is None:
        yield "figure() draws nothing of an ordinary run"
        return
    axes = [axis for axis in figure.axes if axis.get_visible() and axis.axison]
    for place, axis in enumerate(axes):
        title = axis.get_title().partition("\n")[0] or f"panel {place + 1}"
        for name in ("x", "y"):
            if not _is_told(axis, name, axes):
                yield f"the {name} axis of '{title}' has no label"


def _draw(analysis: Analysis, study: Study) -> tuple[Any, bytes | None]:
    with _styled():
        figure = analysis.figure(study)
        if figure is None:
            return None, None
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return figure, stream.getvalue()


@contextmanager
def _styled() -> Iterator[None]:
    """The style of a run's figures, warnings being errors.

    Raises:
        Skip: matplotlib is missing.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise Skip("matplotlib is not installed (the extra `figures`)") from None
    from harness.run.analyses import STYLE

    with warnings.catch_warnings(), mpl.rc_context(STYLE):
        warnings.simplefilter("error")
        yield


def _open_figures() -> list[int]:
    """What pyplot holds, where it is loaded."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return [] if pyplot is None else list(pyplot.get_fignums())


def _is_told(axis: Any, name: str, axes: list[Any]) -> bool:
    """Whether an axis has a label or names instead of numbers, or its row or column of panels has them for it."""
    row = _beside(axis, name, axes)
    if getattr(axis.figure, f"get_sup{name}label")() or any(_label(other, name) for other in row):
        return True
    if hasattr(axis, "_colorbar"):  # its one label is on either side
        return bool(_label(axis, "x") or _label(axis, "y"))
    bare = not _written(axis, name)
    return any(_has_names(other, name) for other in (row if bare else [axis]))


def _written(axis: Any, name: str) -> list[str]:
    """The texts at an axis's ticks."""
    labels = getattr(axis, f"{name}axis").get_ticklabels()
    return [label.get_text() for label in labels if label.get_visible() and label.get_text().strip()]


def _has_names(axis: Any, name: str) -> bool:
    written = _written(axis, name)
    return bool(written) and not any(map(_is_number, written))


def _label(axis: Any, name: str) -> str:
    text: str = getattr(axis, f"get_{name}label")()
    return text.strip()


def _beside(axis: Any, name: str, axes: list[Any]) -> list[Any]:
    """The panel itself, and those of its column (for x) or row (for y)."""
    spec = axis.get_subplotspec()
    if spec is None:
        return [axis]
    span = "colspan" if name == "x" else "rowspan"
    return [
        other
        for other in axes
        if (place := other.get_subplotspec()) is not None and getattr(place, span) == getattr(spec, span)
    ]


def _is_number(text: str) -> bool:
    """Whether a tick label is a number."""
    try:
        float(text.strip().replace("−", "-").replace("$", "").replace("\\mathdefault{", "").rstrip("}") or 0)
    except ValueError:
        return False
    return True
