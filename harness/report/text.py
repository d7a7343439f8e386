"""What a table cell says, in plain words."""

from __future__ import annotations

import re
from collections import Counter

from harness.report.summary import Summary
from harness.report.table import TableRow

SHORT = 40
WORDS = {"memory": "out of memory"}


def percent(summary: Summary, *, signed: bool = False) -> str:
    """``71.95 ± 1.41``, or the mean alone for one value, or an en dash for none."""
    if summary.mean is None:
        return "–"
    mean = f"{100 * summary.mean:+.2f}".replace("-", "−") if signed else f"{100 * summary.mean:.2f}"
    return mean if summary.spread is None else f"{mean} ± {100 * summary.spread:.2f}"


def value_text(row: TableRow) -> str:
    """The value with what qualifies it, or why there is none: ``71.95 ± 1.41 (n=3/5, 2 failed)``, ``timeout``."""
    if row.test.n == 0:
        return _without_value(row)
    remarks = [*_count(row.test), *(f"{k} {_word(s)}" for s, k in _lost(row).items())]
    if row.provisional:
        remarks.append("provisional")
    return percent(row.test) + (f" ({', '.join(remarks)})" if remarks else "")


def validation_text(row: TableRow) -> str:
    """The validation value of the same checkpoints."""
    remarks = _count(row.validation) if row.validation.n else []
    return percent(row.validation) + (f" ({', '.join(remarks)})" if remarks else "")


def difference_text(row: TableRow) -> str:
    """The difference to the reference in percentage points; an en dash for the reference itself."""
    if row.difference is None:
        return "–"
    remarks = _count(row.difference) if row.difference.n else []
    return percent(row.difference, signed=True) + (f" ({', '.join(remarks)})" if remarks else "")


def _count(summary: Summary) -> list[str]:
    """The number of seeds where it is one or fewer than the suite's."""
    if not summary.complete:
        return [f"n={summary.n}/{len(summary.values)}"]
    return ["n=1"] if summary.n == 1 else []


def _lost(row: TableRow) -> Counter[str]:
    return Counter(status for status in row.statuses if status != "ok")


def _word(status: str) -> str:
    return WORDS.get(status, status)


def _without_value(row: TableRow) -> str:
    if row.status in ("undefined", "failed") and row.reason and not _long(row.reason):
        line = one_line(row.reason)
        return f"undefined ({line})" if row.status == "undefined" else f"failed: {line}"
    return _word(row.status)


def _long(reason: str) -> bool:
    """Whether a reason is a footnote's, as no cut leaves its end, which often says most."""
    return len(one_line(reason)) > SHORT


def needs_footnote(row: TableRow) -> bool:
    """Whether the cell leaves out something of the reason, or a defined value carries a remark."""
    if row.status == "ok":
        return any(row.reasons)
    if row.test.n == 0 and row.status in ("failed", "undefined"):
        return _long(row.reason)
    return bool(row.reason) and any(row.reasons)


def footnote(row: TableRow) -> str:
    """The full reason, or the remarks on defined values."""
    reason = row.reason if row.status != "ok" else "; ".join(dict.fromkeys(filter(None, row.reasons)))
    return one_line(reason)


def one_line(text: str) -> str:
    """The text on one line, without terminal colours and other control characters that a message may carry."""
    plain = re.sub(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))", "", text)
    return " ".join("".join(c if c.isprintable() else " " for c in plain).split())
