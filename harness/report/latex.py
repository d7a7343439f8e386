"""The report as LaTeX: one ``table`` environment a section; needs booktabs and graphicx, nothing else beyond LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import normalize

from harness.report.block import Block
from harness.report.build import Report
from harness.report.layout import Grid, Text

COMMANDS = {"best": r"\textbf", "second": r"\underline"}
WIDE = 5
"""A table with more columns is set small."""
WIDEST = 10
"""A table beside the main one with more columns is left out."""
FITTED = r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi"
"""A table wider than the text is scaled down to it, and no other."""
PAGE, SCALED = 110, 140
"""Letters of a line: of each part of a table that is cut, and how many at most are scaled to the page instead."""
LEGEND = "Best of a column in bold, second best underlined."
_SPECIAL = {
    "\0": "{}",  # set between two hyphens or quotes, which would otherwise print as one dash or mark
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # after a row's end an open bracket would be read as its optional argument
    "]": "{]}",
    "*": "{*}",
    "±": r"$\pm$",
    "†": r"$^{\dagger}$",
    "‡": r"$^{\ddagger}$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "×": r"$\times$",
    "§": r"$^{\S}$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "→": r"$\rightarrow$",
    "−": "$-$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "ε": r"$\epsilon$",
    "η": r"$\eta$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "φ": r"$\phi$",
    "ω": r"$\omega$",
    "Δ": r"$\Delta$",
    "Σ": r"$\Sigma$",
}


def latex(report: Report) -> str:
    """The whole report; needs ``\\usepackage{booktabs,graphicx}``."""
    head = f"% {_comment(report.title)}\n% needs \\usepackage{{booktabs,graphicx}}"
    return "\n\n".join([head, *(_section(report, n) for n in range(len(report.sections)))]) + "\n"


def _section(report: Report, number: int) -> str:
    section = report.sections[number]
    grid = section.grid
    sentences = [*section.caption, *([LEGEND] if grid.ranked else [])]
    selected = [f"% selected: {_comment(line)}" for line in section.selected]
    name = _name(report, number)
    main = "\n".join([*selected, *_table(grid, sentences, name)])
    return "\n\n".join([main, *(block_text(block, name) for block in section.blocks)])


def block_text(block: Block, name: str = "tab") -> str:
    """A table beside the main one as an environment of its own; one too wide for a page is only named."""
    if not block.grid.rows:
        return "\n".join(f"% {_comment(line)}" for line in (f"{block.title}:", *block.sentences))
    if len(block.grid.header) > WIDEST:
        return (
            f"% {_comment(block.title)}: {len(block.grid.header)} columns, too wide for a page; see the other formats"
        )
    figure = [f"% figure: {_comment(block.figure)}"] if block.figure else []
    sentences = [f"{block.title}.", *block.sentences]
    return "\n".join([*figure, *_table(block.grid, sentences, f"{name}-{_slug(block.title).lower()}")])


def _table(grid: Grid, sentences: Sequence[str], name: str) -> list[str]:
    parts = [_tabular(grid, columns) for columns in _parts(grid)]
    return [
        r"\begin{table}[t]",
        r"\centering",
        r"\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{' '.join(escape(sentence) for sentence in sentences)}}}",
        rf"\label{{{name}}}",
        *([r"\footnotesize\setlength{\tabcolsep}{4pt}"] if len(grid.header) > WIDE else []),
        *parts[0],
        *(line for part in parts[1:] for line in (r"\par\medskip", *part)),
        *_footnotes(grid),
        r"\end{table}",
    ]


def _tabular(grid: Grid, columns: Sequence[int]) -> list[str]:
    words = sum(column < grid.words for column in columns)
    return [
        r"\sbox0{%",
        rf"\begin{{tabular}}{{{'l' * words + 'c' * (len(columns) - words)}}}",
        r"\toprule",
        _line([escape(grid.header[column]) for column in columns]),
        r"\midrule",
        *(_line([_entry(row[column]) for column in columns]) for row in grid.rows),
        r"\bottomrule",
        r"\end{tabular}}%",
        FITTED,
    ]


def _parts(grid: Grid) -> list[tuple[int, ...]]:
    """The columns of each part of a table: one, or several below each other where it is far wider than a page."""
    widths = [max(len(h), *(len(row[n].text) for row in grid.rows), 0) + 2 for n, h in enumerate(grid.header)]
    first, room = tuple(range(grid.words)), PAGE - sum(widths[: grid.words])
    if room < PAGE / 2 or sum(widths) <= SCALED:
        return [tuple(range(len(widths)))]
    parts: list[tuple[int, ...]] = []
    left = 0
    for column in range(grid.words, len(widths)):
        if widths[column] > left:
            parts.append(first)
            left = room
        parts[-1] = (*parts[-1], column)
        left -= widths[column]
    return parts


def _name(report: Report, number: int) -> str:
    suffix = f"-{number + 1}" if len(report.sections) > 1 else ""
    return f"tab:{_slug(report.results.suite)}{suffix}"


def _slug(text: str) -> str:
    plain = normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9.-]+", "-", plain)


def _line(entries: list[str]) -> str:
    return " & ".join(entries) + r" \\"


def _entry(text: Text) -> str:
    command = COMMANDS.get(text.rank)
    body = f"{command}{{{escape(text.text)}}}" if command else escape(text.text)
    numbers = f"$^{{{','.join(map(str, text.notes))}}}$" if text.notes else ""
    return body + escape(text.flags) + numbers


def _footnotes(grid: Grid) -> list[str]:
    if not grid.footnotes:
        return []
    notes = [rf"$^{{{n}}}$~{escape(note)}\par" for n, note in enumerate(grid.footnotes, start=1)]
    return [r"\par\smallskip", r"\begin{minipage}{\linewidth}\footnotesize\raggedright", *notes, r"\end{minipage}"]


def _comment(text: str) -> str:
    return " ".join(text.split())


def escape(text: str) -> str:
    """The text as LaTeX prints it under pdfLaTeX; a character it has no sign for is given by its code point."""
    line = re.sub(r"([-'])(?=\1)", "\\1\0", " ".join(text.split()))
    return "".join(_SPECIAL.get(character) or _character(character) for character in line)


def _character(character: str) -> str:
    if ord(character) < 0x180 and (character.isprintable() or character == " "):
        return character
    plain = normalize("NFKD", character).encode("ascii", "ignore").decode()
    return "".join(_SPECIAL.get(c, c) for c in plain) or rf"\texttt{{U+{ord(character):04X}}}"
