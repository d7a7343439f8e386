"""The critical-difference diagram: average ranks on an axis, bars over methods that do not differ.

After J. Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006, figure 1. Geometry only;
lengths are in the units of the drawing, about a pixel each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from harness.report.text import one_line
from harness.results.ranks import Ranking

AXIS = 480.0
"""Length of the axis."""
TOP = 58.0
ROW, BAR = 19.0, 9.0
LETTER = 7.0
"""Width that a letter of a name is reckoned with."""
LONGEST = 44
MOST = 40
"""More methods than this make no readable diagram."""


@dataclass(frozen=True)
class Line:
    """A straight or bent line through points (x, y); ``kind`` is ``axis``, ``tick``, ``lead`` or ``bar``."""

    kind: str
    points: tuple[tuple[float, float], ...]

    @property
    def path(self) -> str:
        """The points as an SVG polyline has them."""
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)


@dataclass(frozen=True)
class Label:
    """A text at a point; ``anchor`` is ``start``, ``middle`` or ``end``."""

    text: str
    x: float
    y: float
    anchor: str = "middle"


@dataclass(frozen=True)
class Diagram:
    """A drawing with its size, the critical difference, and what it says in words for those who do not see it."""

    width: float
    height: float
    lines: tuple[Line, ...]
    labels: tuple[Label, ...]
    critical: float
    said: str


def diagram(found: Ranking) -> Diagram | None:
    """The diagram of a ranking; None where it has no critical difference, or too many methods to be read."""
    if found.critical is None or not 2 <= len(found.ranks) <= MOST:
        return None
    names = {method: _short(method) for method in found.ranks}
    margin = LETTER * max(len(f"{name} (0.00)") for name in names.values()) + 20
    end = len(found.ranks)

    def x(rank: float) -> float:
        return margin + AXIS * (rank - 1) / (end - 1)

    lines, labels = _axis(x(1), x(end), [(rank, x(rank)) for rank in range(1, end + 1)])
    length = found.critical * AXIS / (end - 1)
    if length <= AXIS:
        lines += [Line("axis", ((x(1), 14), (x(1) + length, 14)))]
        lines += [Line("tick", ((place, 10), (place, 18))) for place in (x(1), x(1) + length)]
        labels.append(Label(f"CD = {found.critical:.2f}", x(1) + length + 8, 18, "start"))
    bars = [(x(found.ranks[group[0]]), x(found.ranks[group[-1]])) for group in found.groups]
    lines += [Line("bar", ((a - 4, TOP + 8 + BAR * i), (b + 4, TOP + 8 + BAR * i))) for i, (a, b) in enumerate(bars)]
    first = TOP + 8 + BAR * len(bars) + 14
    half = ceil(end / 2)
    for place, (method, rank) in enumerate(found.ranks.items()):
        left = place < half
        y = first + ROW * (place if left else end - 1 - place)
        edge = margin - 12 if left else margin + AXIS + 12
        lines.append(Line("lead", ((x(rank), TOP), (x(rank), y), (edge, y))))
        text = f"{names[method]} ({rank:.2f})"
        labels.append(Label(text, edge - 4 if left else edge + 4, y + 4, "end" if left else "start"))
    return Diagram(2 * margin + AXIS, first + ROW * half, tuple(lines), tuple(labels), found.critical, _said(found))


def _axis(start: float, end: float, ticks: Sequence[tuple[int, float]]) -> tuple[list[Line], list[Label]]:
    step = ceil(len(ticks) / 15)
    lines = [Line("axis", ((start, TOP), (end, TOP)))]
    lines += [Line("tick", ((place, TOP - 6), (place, TOP))) for _, place in ticks]
    return lines, [Label(str(rank), place, TOP - 10) for rank, place in ticks if not (rank - 1) % step]


def _short(name: str) -> str:
    line = one_line(name)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1].rstrip()}…"


def _said(found: Ranking) -> str:
    ranks = ", ".join(f"{one_line(method)} {rank:.2f}" for method, rank in found.ranks.items())
    groups = "; ".join(", ".join(map(one_line, group)) for group in found.groups) or "none"
    return (
        f"Critical-difference diagram. Average ranks, best first: {ranks}. Critical difference {found.critical:.2f}. "
        f"Groups of methods that do not differ: {groups}."
    )
