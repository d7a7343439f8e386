"""Amounts of bytes for people, everywhere in the same way. Imports nothing."""

from __future__ import annotations

UNITS = ("B", "kB", "MB", "GB", "TB")


def size_text(count: float) -> str:
    """``1.5 MB``: three significant digits, in decimal units, as ``--memory 1500M`` is written."""
    unit = 0
    while count >= 999.5 and unit < len(UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.0f} {UNITS[unit]}" if count >= 999.5 else f"{count:.3g} {UNITS[unit]}"
