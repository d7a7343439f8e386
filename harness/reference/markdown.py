"""Text and tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_CODE = re.compile(r"(``.+?``|`[^`]*`)")
_SPECIAL = re.compile(r"([\\*|<])")
_WORD_END = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9{(])")
_BAR = re.compile(r"(?<!\\)\|")


def escaped(text: str) -> str:
    """Return text that Markdown shows unchanged, also within a table; code spans stay."""
    parts = _CODE.split(text)
    return "".join(
        _BAR.sub(r"\\|", part) if part.startswith("`") else _WORD_END.sub(r"\\_", _SPECIAL.sub(r"\\\1", part))
        for part in parts
    )


def prose(text: str) -> str:
    """Return a docstring that is Markdown already, with the signs that HTML would take for a tag escaped."""
    lines = []
    for line in text.strip().splitlines():
        parts = [line] if line.startswith("    ") else _CODE.split(line)
        lines.append("".join(part if part.startswith(("`", "    ")) else part.replace("<", r"\<") for part in parts))
    return "\n".join(lines)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


def code(value: object) -> str:
    """Return a code span for a cell of a table; nothing for an empty text."""
    text = str(value)
    return f"`{_BAR.sub(chr(92) + '|', text)}`" if text else ""


def value(given: Any) -> str:
    """Return a value as a suite writes it."""
    if isinstance(given, dict):
        return "{" + ", ".join(f"{name}: {value(item)}" for name, item in given.items()) + "}"
    if isinstance(given, bool):
        return str(given).lower()
    return "none" if given is None else str(given) or '""'


def bounds(low: float | None, high: float | None) -> str:
    """Return the least and the greatest value that are allowed, in words; nothing for none."""
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:g}" if high is not None else ""
