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
    figure: str = ""
    """Where a picture of it lies, if there is one."""

    @property
    def told(self) -> tuple[str, ...]:
        """The sentences, the last of which names the figure."""
        return (*self.sentences, f"Figure: {self.figure}") if self.figure else self.sentences


EMPTY = Grid((), (), ())
