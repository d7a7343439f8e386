"""The report as LaTeX: one ``table`` environment a section; needs booktabs and graphicx, nothing else beyond LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import normalize

from harness.report.build import Report
from harness.report.table import Text, TextTable

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


def render_latex(report: Report) -> str:
    """Render the whole report; needs ``\\usepackage{booktabs,graphicx}``."""
    parts = [f"% {_comment(report.title)}\n% needs \\usepackage{{booktabs,graphicx}}"]
    for number, section in enumerate(report.sections, start=1):
        name = f"tab:{_slug(report.results.suite)}" + (f"-{number}" if len(report.sections) > 1 else "")
        parts += [latex_table(table, name) for table in (section.main, *section.beside)]
    return "\n\n".join(parts) + "\n"


def latex_table(table: TextTable, name: str = "tab") -> str:
    """Render one table as an environment of its own; one beside the main table and too wide for a page is only named.

    Args:
        name: the label; that of a table with a title is followed by it.
    """
    sentences = [*table.caption, *([LEGEND] if table.ranked else [])]
    if not table.shown:
        return "\n".join(f"% {_comment(line)}" for line in (f"{table.title}:", *sentences))
    if table.title and len(table.header) > WIDEST:
        return f"% {_comment(table.title)}: {len(table.header)} columns, too wide for a page; see the other formats"
    if table.title:
        sentences = [f"{table.title}.", *sentences]
        name = f"{name}-{_slug(table.title).lower()}"
    comments = [f"selected: {line}" for line in table.selected]
    comments += [f"figure: {table.figure}"] if table.figure else []
    parts = [_tabular(table, columns) for columns in _parts(table)]
    lines = [
        *(f"% {_comment(comment)}" for comment in comments),
        r"\begin{table}[t]",
        r"\centering",
        r"\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{' '.join(escape(sentence) for sentence in sentences)}}}",
        rf"\label{{{name}}}",
        *([r"\footnotesize\setlength{\tabcolsep}{4pt}"] if len(table.header) > WIDE else []),
        *parts[0],
        *(line for part in parts[1:] for line in (r"\par\medskip", *part)),
        *_footnotes(table),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _tabular(table: TextTable, columns: Sequence[int]) -> list[str]:
    words = sum(column < table.words for column in columns)
    return [
        r"\sbox0{%",
        rf"\begin{{tabular}}{{{'l' * words + 'c' * (len(columns) - words)}}}",
        r"\toprule",
        _line([escape(table.header[column]) for column in columns]),
        r"\midrule",
        *(_line([_entry(row[column]) for column in columns]) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}}%",
        FITTED,
    ]


def _parts(table: TextTable) -> list[tuple[int, ...]]:
    """Return the columns of each part of a table: several parts below each other if it is far wider than a page."""
    widths = [max(len(h), *(len(row[n].text) for row in table.rows), 0) + 2 for n, h in enumerate(table.header)]
    first, room = tuple(range(table.words)), PAGE - sum(widths[: table.words])
    if room < PAGE / 2 or sum(widths) <= SCALED:
        return [tuple(range(len(widths)))]
    parts: list[tuple[int, ...]] = []
    left = 0
    for column in range(table.words, len(widths)):
        if widths[column] > left:
            parts.append(first)
            left = room
        parts[-1] = (*parts[-1], column)
        left -= widths[column]
    return parts


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


def _footnotes(table: TextTable) -> list[str]:
    if not table.footnotes:
        return []
    notes = [rf"$^{{{n}}}$~{escape(note)}\par" for n, note in enumerate(table.footnotes, start=1)]
    return [r"\par\smallskip", r"\begin{minipage}{\linewidth}\footnotesize\raggedright", *notes, r"\end{minipage}"]


def _comment(text: str) -> str:
    return " ".join(text.split())


def escape(text: str) -> str:
    """Escape a text for pdfLaTeX; a character that it has no sign for is given by its code point."""
    line = re.sub(r"([-'])(?=\1)", "\\1\0", " ".join(text.split()))
    return "".join(_SPECIAL.get(character) or _character(character) for character in line)


def _character(character: str) -> str:
    if ord(character) < 0x180 and (character.isprintable() or character == " "):
        return character
    plain = normalize("NFKD", character).encode("ascii", "ignore").decode()
    return "".join(_SPECIAL.get(c, c) for c in plain) or rf"\texttt{{U+{ord(character):04X}}}"
