"""Draw an analysis's figure as a run does, and check that its axes are labelled."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from harness.analysis import Analysis, Study
from harness.testing.report import Skip


def made(analysis: Analysis, study: Study) -> Any:
    """Return the figure, not drawn yet; None for none, or without matplotlib."""
    with suppress(Skip), _styled():
        return analysis.figure(study)
    return None


def drawn(analysis: Analysis, study: Study) -> bytes | None:
    """Return the figure as SVG, under the style of a run's figures; None for none, or without matplotlib.

    Raises:
        Warning: drawing warns.
    """
    if type(analysis).figure is Analysis.figure:
        return None
    with suppress(Skip):
        return _draw(analysis, study)[1]
    return None


def problems(analysis: Analysis, study: Study) -> Iterator[str]:
    """Yield the problems of a study's figure.

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
        yield from (f"the {xy} axis of '{title}' has no label" for xy in ("x", "y") if not _labelled(axis, xy, axes))


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
    """Apply the style of a run's figures, warnings being errors.

    Raises:
        Skip: matplotlib is missing.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise Skip("matplotlib is not installed (the extra `figures`)") from None
    from harness.run.analyses import STYLE

    with warnings.catch_warnings(), mpl.rc_context({**STYLE, "figure.max_open_warning": 0}):
        warnings.simplefilter("error")
        yield


def _open_figures() -> list[int]:
    """Return pyplot's open figures; none where it is not loaded."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return [] if pyplot is None else list(pyplot.get_fignums())


def _labelled(axis: Any, xy: str, axes: list[Any]) -> bool:
    """Return True if an axis has a label or names instead of numbers, or its row or column of panels has."""
    panels = _beside(axis, xy, axes)
    if getattr(axis.figure, f"get_sup{xy}label")() or any(_label(panel, xy) for panel in panels):
        return True
    if hasattr(axis, "_colorbar"):  # its one label is on either side
        return bool(_label(axis, "x") or _label(axis, "y"))
    named = [axis] if _ticks(axis, xy) else panels
    return any(_ticks(panel, xy) and not any(map(_is_number, _ticks(panel, xy))) for panel in named)


def _label(axis: Any, xy: str) -> str:
    text: str = getattr(axis, f"get_{xy}label")()
    return text.strip()


def _ticks(axis: Any, xy: str) -> list[str]:
    labels = getattr(axis, f"{xy}axis").get_ticklabels()
    return [label.get_text() for label in labels if label.get_visible() and label.get_text().strip()]


def _is_number(text: str) -> bool:
    try:
        float(text.strip().replace("−", "-").replace("$", "").replace("\\mathdefault{", "").rstrip("}"))
    except ValueError:
        return False
    return True


def _beside(axis: Any, xy: str, axes: list[Any]) -> list[Any]:
    """Return the panels of its column (for x) or row (for y), itself among them."""
    spec = axis.get_subplotspec()
    if spec is None:
        return [axis]
    span = "colspan" if xy == "x" else "rowspan"
    specs = [(other, other.get_subplotspec()) for other in axes]
    return [other for other, place in specs if place is not None and getattr(place, span) == getattr(spec, span)]
