"""The model of a printed table, with the words and numbers of its entries. Every renderer prints it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from harness.errors import bounded
from harness.results.aggregate import TableRow
from harness.results.statistics import Interval
from harness.results.summary import Summary

SHORT = 40
"""Longer reasons become footnotes."""
SIGNIFICANT = "§"
ORACLE_FLAG = "‡"


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
        about: the number of columns behind the first that say what its row is.
        footnotes: ``footnotes[i]`` has the number i + 1.
        caption: sentences above or below the table; ``notes`` are those that a paper sets in small print.
        selected: the configuration that each tuned method shows, one line each.
        figure: the path of a picture of the table, or empty.
    """

    title: str = ""
    header: tuple[str, ...] = ()
    rows: tuple[tuple[Text, ...], ...] = ()
    words: int = 1
    about: int = 0
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


def one_line(text: str) -> str:
    """Return the text on one line, without terminal colours and other control characters that a message may carry."""
    plain = re.sub(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))", "", text)
    return " ".join("".join(c if c.isprintable() else " " for c in plain).split())


def shortened(text: str, longest: int) -> str:
    """Return the text on one line, cut to so many letters."""
    return bounded(one_line(text), longest)


def percent(summary: Summary, *, signed: bool = False) -> str:
    """Return ``71.95 ± 1.41``, the mean alone for one value, an en dash without values."""
    if summary.mean is None:
        return "–"
    mean = points(100 * summary.mean, signed=signed)
    return mean if summary.spread is None else f"{mean} ± {100 * summary.spread:.2f}"


def points(value: float, *, signed: bool = False) -> str:
    """Return a number with two decimals and a real minus sign, which zero does not have."""
    value = round(value, 2) + 0.0
    return (f"{value:+.2f}" if signed else f"{value:.2f}").replace("-", "−")


def interval_text(interval: Interval, *, seeds: int = 0, signed: bool = False) -> str:
    """Return ``71.95 [68.45, 75.45]``, or the estimate with the reason why there is no interval.

    Args:
        seeds: the number of seeds, to add ``(n=2/3)`` to an interval of fewer.
    """
    if interval.estimate is None:
        return "–"
    estimate = points(interval.estimate, signed=signed)
    if interval.low is None or interval.high is None:
        return f"{estimate} (n=1)" if interval.n == 1 else f"{estimate} (no spread, n={interval.n})"
    missing = f" (n={interval.n}/{seeds})" if interval.n < seeds else ""
    return f"{estimate} [{points(interval.low)}, {points(interval.high)}]{missing}"


def value_text(row: TableRow) -> str:
    """Return the value with its remarks, or why there is none: ``71.95 ± 1.41 (n=3/5, 2 failed)``, ``timeout``."""
    if row.test.n == 0:
        return _without_value(row)
    lost = Counter(status for status in row.statuses if status != "ok")
    remarks = [*_count(row.test), *(f"{count} {_word(status)}" for status, count in lost.items())]
    return with_remarks(percent(row.test), remarks + (["provisional"] if row.provisional else []))


def summary_text(summary: Summary, *, signed: bool = False) -> str:
    """Return mean and spread with the number of seeds if it is one or fewer than the suite's."""
    return with_remarks(percent(summary, signed=signed), _count(summary) if summary.n else [])


def with_remarks(text: str, remarks: list[str]) -> str:
    """Return the text with the remarks in brackets, if there are any."""
    return text + (f" ({', '.join(remarks)})" if remarks else "")


def _count(summary: Summary) -> list[str]:
    """Return the number of seeds if it is one or fewer than the suite's."""
    if not summary.complete:
        return [f"n={summary.n}/{len(summary.values)}"]
    return ["n=1"] if summary.n == 1 else []


def _word(status: str) -> str:
    return "out of memory" if status == "memory" else status


def _without_value(row: TableRow) -> str:
    if row.status in ("undefined", "failed") and row.reason and not _long(row.reason):
        line = one_line(row.reason)
        return f"undefined ({line})" if row.status == "undefined" else f"failed: {line}"
    return _word(row.status)


def _long(reason: str) -> bool:
    """Return True if a reason is too long for a table entry; it is never cut, as its end often says most."""
    return len(one_line(reason)) > SHORT


def footnote(row: TableRow) -> str:
    """Return the full reason if the entry leaves something out of it, or the remarks on a defined value; else empty."""
    if row.status == "ok":
        return one_line("; ".join(dict.fromkeys(filter(None, row.reasons))))
    if row.test.n == 0 and row.status in ("failed", "undefined"):
        return one_line(row.reason) if _long(row.reason) else ""
    return one_line(row.reason) if any(row.reasons) else ""
