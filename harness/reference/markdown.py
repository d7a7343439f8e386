"""Markdown: what is shown as it stands, tables, and docstrings in the style of this code base."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence

_SPAN = re.compile(r"(``.+?``|`[^`]*`)")
_SPECIAL = re.compile(r"([\\*|<])")
_WORD_END = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9{(])")
_ROLE = re.compile(r":(?:func|meth|class|attr|mod|data):`(~?)([^`]+)`")
_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Yields|Examples?):\s*$")
_ITEM = re.compile(r"^([\w*][\w*., ]*): (.*)$")
_TITLES = {"Args": "Arguments"}
_BAR = re.compile(r"(?<!\\)\|")


def escaped(text: str) -> str:
    """Text as Markdown shows it unchanged, also within a table; code spans stay."""
    parts = _SPAN.split(text)
    return "".join(
        _BAR.sub(r"\\|", part) if part.startswith("`") else _WORD_END.sub(r"\\_", _SPECIAL.sub(r"\\\1", part))
        for part in parts
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    return "\n".join([row(headings), row(["---"] * len(headings)), *map(row, rows)])


def row(cells: Sequence[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def code(value: object) -> str:
    """A code span for a cell of a table; nothing for nothing."""
    text = str(value)
    return f"`{_BAR.sub(chr(92) + '|', text)}`" if text else ""


def docstring(text: str, links: Mapping[str, str] | None = None) -> str:
    """A docstring as Markdown: sections such as ``Args:`` become lists, references code spans.

    Args:
        text: as it stands in the source.
        links: address of each name that a reference may lead to.
    """
    lines, made = inspect.cleandoc(text).splitlines(), []
    while lines:
        line = lines.pop(0)
        section = _SECTION.match(line)
        if section is None:
            made.append(_escaped_line(line, links or {}))
            continue
        inner = []
        while lines and (not lines[0].strip() or lines[0].startswith("    ")):
            inner.append(lines.pop(0)[4:])
        title = _TITLES.get(section[1], section[1])
        made += ["", f"**{title}**", "", *_items(inner, links or {}), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(made)).strip()


def cell(text: str, links: Mapping[str, str] | None = None) -> str:
    """A docstring as one cell of a table."""
    return _BAR.sub(r"\\|", " ".join(docstring(text, links).split()))


def _items(lines: Sequence[str], links: Mapping[str, str]) -> list[str]:
    made = []
    for line in lines:
        item = _ITEM.match(line)
        if item is not None:
            names = ", ".join(f"`{name.strip()}`" for name in item[1].split(","))
            made.append(f"- {names}: {_escaped_line(item[2], links)}")
        else:
            made.append(_escaped_line(line, links) if not line.startswith("    ") else f"  {line.strip()}")
    return made


def _escaped_line(line: str, links: Mapping[str, str]) -> str:
    """A line of prose; one of an indented block stands as it is."""
    if line.startswith("    ") and not line.lstrip().startswith("-"):
        return line

    def name(match: re.Match[str]) -> str:
        short = match[2].rpartition(".")[2]
        shown = f"`{short if match[1] else match[2]}`"
        return f"[{shown}]({links[short]})" if short in links else shown

    parts = _SPAN.split(_ROLE.sub(name, line))
    return "".join(part if part.startswith("`") else part.replace("<", r"\<") for part in parts)
