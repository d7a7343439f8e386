"""How many cells a suite may have: what a slip or a stranger makes of a grid must not fill the memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod

from harness.errors import UserError
from harness.suite.tree import Place, Problems, shortened

VARIABLE = "BENCH_MAX_CELLS"
MOST_CELLS = 1_000_000


def most_cells() -> int:
    """:data:`MOST_CELLS`, or what the variable :data:`VARIABLE` says.

    Raises:
        UserError: the variable is no number.
    """
    text = os.environ.get(VARIABLE, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 20):
        raise UserError(f"{VARIABLE}={shortened(text)}: expected a whole number of cells")
    return int(text or MOST_CELLS)


class Cells:
    """Counts the cells of a suite and notes when there are too many."""

    def __init__(self, place: Place, problems: Problems) -> None:
        self._place, self._problems, self._most, self._count = place, problems, most_cells(), 0

    def fit(self, *factors: Sequence[object]) -> bool:
        """Whether datasets, methods and seeds alone make few enough."""
        return self._told(prod(map(len, factors)))

    def add(self, count: int) -> bool:
        """Count more; whether they are still few enough."""
        self._count += count
        return self._told(self._count)

    def _told(self, count: int) -> bool:
        if count > self._most:
            self._problems.add(
                self._place,
                f"the suite has {count:,} cells or more; at most {self._most:,} are allowed ({VARIABLE}=N allows N)",
            )
        return count <= self._most
