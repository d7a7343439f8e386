"""The critical-difference diagram: average ranks on an axis, bars over methods that do not differ.

After J. Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006, figure 1. Geometry only;
lengths are in the units of the drawing, about a pixel each.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from harness.report.table import shortened
from harness.results.statistics import ALPHA, Ranking

AXIS = 480.0
"""Length of the axis."""
TOP = 58.0
ROW, BAR = 19.0, 9.0
LETTER = 7.0
"""Assumed width of a letter of a name."""
LONGEST = 44
MOST = 40
"""More methods than this make no readable diagram."""


class Line(NamedTuple):
    """A straight or bent line through points (x, y); ``kind`` is ``axis``, ``tick``, ``lead`` or ``bar``."""

    kind: str
    points: tuple[tuple[float, float], ...]


class Label(NamedTuple):
    """A text at a point; ``anchor`` is ``start``, ``middle`` or ``end``."""

    text: str
    x: float
    y: float
    anchor: str = "middle"


@dataclass(frozen=True)
class Diagram:
    """A drawing with its size and the critical difference."""

    width: float
    height: float
    lines: tuple[Line, ...]
    labels: tuple[Label, ...]
    critical: float


def diagram(ranking: Ranking) -> Diagram | None:
    """Draw a ranking; None where its order says nothing, or there are too many methods to be read.

    It says nothing where Friedman's test does not reject that all rank alike, or no two ranks can differ enough.
    """
    if ranking.critical is None or not 2 <= len(ranking.ranks) <= MOST:
        return None
    if ranking.critical > len(ranking.ranks) - 1 or (ranking.p is not None and ranking.p > ALPHA):
        return None
    names = {method: shortened(method, LONGEST) for method in ranking.ranks}
    margin = LETTER * max(len(f"{name} (0.00)") for name in names.values()) + 20
    end = len(ranking.ranks)

    def x(rank: float) -> float:
        return margin + AXIS * (rank - 1) / (end - 1)

    lines = [Line("axis", ((x(1), TOP), (x(end), TOP)))]
    lines += [Line("tick", ((x(rank), TOP - 6), (x(rank), TOP))) for rank in range(1, end + 1)]
    labels = [Label(str(rank), x(rank), TOP - 10) for rank in range(1, end + 1, ceil(end / 15))]
    length = ranking.critical * AXIS / (end - 1)
    lines += [Line("axis", ((x(1), 14), (x(1) + length, 14)))]
    lines += [Line("tick", ((place, 10), (place, 18))) for place in (x(1), x(1) + length)]
    labels.append(Label(f"CD = {ranking.critical:.2f}", x(1) + length + 8, 18, "start"))
    for number, group in enumerate(ranking.groups):
        y = TOP + 8 + BAR * number
        lines.append(Line("bar", ((x(ranking.ranks[group[0]]) - 4, y), (x(ranking.ranks[group[-1]]) + 4, y))))
    first, half = TOP + 22 + BAR * len(ranking.groups), ceil(end / 2)
    for place, (method, rank) in enumerate(ranking.ranks.items()):
        left = place < half
        y = first + ROW * (place if left else end - 1 - place)
        edge = margin - 12 if left else margin + AXIS + 12
        lines.append(Line("lead", ((x(rank), TOP), (x(rank), y), (edge, y))))
        text = f"{names[method]} ({rank:.2f})"
        labels.append(Label(text, edge - 4 if left else edge + 4, y + 4, "end" if left else "start"))
    size = 2 * margin + AXIS, first + ROW * half
    return Diagram(*size, tuple(lines), tuple(labels), ranking.critical)
