"""A table beside the main one: statistics, published numbers, a comparison of runs. Every renderer prints it."""

from __future__ import annotations

from dataclasses import dataclass

from harness.report.layout import Grid


@dataclass(frozen=True)
class Block:
    """A titled table with sentences below it; without rows only the title and the sentences are shown."""

    title: str
    grid: Grid
    sentences: tuple[str, ...] = ()


EMPTY = Grid((), (), ())
