"""The model of a printed table: texts, footnotes and caption. Every renderer prints it."""

from __future__ import annotations

from dataclasses import dataclass

from harness.results.aggregate import TableRow


@dataclass(frozen=True)
class Text:
    """One entry of a table.

    Attributes:
        text: the words or number; ``rank`` is ``best``, ``second`` or empty.
        near: True if the value is not distinguishable from the best of its column.
        flags, notes: flag signs and footnote numbers.
        value: the number behind the text, to sort by; None for words and gaps.
        row: the table row of a test value; None for every other entry.
    """

    text: str
    rank: str = ""
    flags: str = ""
    notes: tuple[int, ...] = ()
    value: float | None = None
    row: TableRow | None = None
    near: bool = False


NOTHING = Text("–")
"""The entry where there is no value."""


@dataclass(frozen=True)
class TextTable:
    """A table with the sentences below it; without rows only title and sentences are shown.

    Attributes:
        title: empty for the main table of a section.
        words: the number of first columns that hold words instead of values.
        footnotes: ``footnotes[i]`` has the number i + 1.
        caption: sentences above or below the table; ``notes`` are those that a paper sets in small print.
        selected: the configuration that each tuned method shows, one line each.
        figure: the path of a picture of the table, or empty.
    """

    title: str = ""
    header: tuple[str, ...] = ()
    rows: tuple[tuple[Text, ...], ...] = ()
    words: int = 1
    footnotes: tuple[str, ...] = ()
    caption: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()
    figure: str = ""

    @property
    def flagged(self) -> bool:
        """True if an entry has a sign beside it."""
        return any(text.flags for row in self.rows for text in row)

    @property
    def shown(self) -> bool:
        """True if there is something to print between title and caption."""
        return bool(self.rows) or not self.title

    def remarks(self, legend: str) -> list[str]:
        """Return the legend of the marks if there are any, the notes, and where the figure is."""
        figure = [f"Figure: {self.figure}"] if self.figure else []
        marked = any(text.rank for row in self.rows for text in row)
        return [*([legend] if marked else []), *self.notes, *figure]
