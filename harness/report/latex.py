"""The report as LaTeX: one ``table`` environment a section; needs booktabs and graphicx, nothing else beyond LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from unicodedata import combining, decomposition, normalize

from harness.report.build import RunReport
from harness.report.table import Text, TextTable, one_line

COMMANDS = {"best": r"\textbf", "second": r"\underline"}
WIDE = 5
"""A table with more columns is set small."""
FITTED = r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi"
"""A table wider than the text is scaled down to it, and no other."""
LEGEND = "Best of a column in bold, second best underlined; equal means share a mark."
_GREEK = "alpha beta gamma delta epsilon eta theta kappa lambda mu nu pi rho sigma tau phi omega".split()  # noqa: SIM905
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
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "→": r"$\rightarrow$",
    "−": "$-$",
    "Δ": r"$\Delta$",
    "Σ": r"$\Sigma$",
    **{letter: rf"$\{name}$" for letter, name in zip("αβγδεηθκλμνπρστφω", _GREEK, strict=True)},
}
_RAISED = {"<super>": r"\textsuperscript", "<sub>": r"\textsubscript"}


def render_latex(report: RunReport) -> str:
    """Render the whole report; needs ``\\usepackage{booktabs,graphicx}``."""
    parts = [f"% {one_line(report.title)}\n% needs \\usepackage{{booktabs,graphicx}}"]
    for number, section in enumerate(report.sections, start=1):
        name = f"tab:{_slug(report.results.suite)}" + (f"-{number}" if len(report.sections) > 1 else "")
        parts += [latex_table(table, name) for table in (section.main, *section.beside)]
    return "\n\n".join(parts) + "\n"


def latex_table(table: TextTable, name: str = "tab") -> str:
    """Render one table as an environment of its own.

    Args:
        name: the label; that of a table with a title is followed by it.
    """
    sentences = list(table.caption)
    if not table.shown:
        return "\n".join(f"% {one_line(line)}" for line in (f"{table.title}:", *sentences))
    if table.title:
        sentences = [f"{table.title}.", *sentences]
        name = f"{name}-{_slug(table.title).lower()}"
    comments = [f"selected: {line}" for line in table.selected]
    comments += [f"figure: {table.figure}"] if table.figure else []
    lines = [
        *(f"% {one_line(comment)}" for comment in comments),
        r"\begin{table}[t]",
        r"\centering",
        r"\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{' '.join(escape(sentence) for sentence in sentences)}}}",
        rf"\label{{{name}}}",
        *([r"\footnotesize\setlength{\tabcolsep}{4pt}"] if len(table.header) > WIDE else []),
        *_tabular(table),
        *_notes(table),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _tabular(table: TextTable) -> list[str]:
    return [
        r"\sbox0{%",
        rf"\begin{{tabular}}{{{'l' * table.words + 'c' * (len(table.header) - table.words)}}}",
        r"\toprule",
        _line(map(escape, table.header)),
        r"\midrule",
        *(_line(map(_entry, row)) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}}%",
        FITTED,
    ]


def _slug(text: str) -> str:
    plain = normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9.-]+", "-", plain)


def _line(entries: Iterable[str]) -> str:
    return " & ".join(entries) + r" \\"


def _entry(text: Text) -> str:
    command = COMMANDS.get(text.rank)
    body = f"{command}{{{escape(text.text)}}}" if command else escape(text.text)
    numbers = f"$^{{{','.join(map(str, text.notes))}}}$" if text.notes else ""
    return body + escape(text.flags) + numbers


def _notes(table: TextTable) -> list[str]:
    notes = [rf"$^{{{n}}}$~{escape(note)}\par" for n, note in enumerate(table.footnotes, start=1)]
    notes += [rf"{escape(remark)}\par" for remark in replace(table, figure="").remarks(LEGEND)]
    if not notes:
        return []
    return [r"\par\smallskip", r"\begin{minipage}{\linewidth}\footnotesize\raggedright", *notes, r"\end{minipage}"]


def escape(text: str) -> str:
    """Escape a text for pdfLaTeX; a character that it has no sign for is given by its code point."""
    line = re.sub(r"([-'])(?=\1)", "\\1\0", " ".join(normalize("NFC", text).split()))
    return "".join(_SPECIAL.get(character) or _character(character) for character in line)


def _character(character: str) -> str:
    if ord(character) < 0x180 and (character.isprintable() or character == " "):
        return character
    parts = normalize("NFKD", character)
    plain = "".join(c for c in parts if not combining(c))
    if not all(c.isascii() or c in _SPECIAL for c in plain) or (plain != parts and not plain.isalpha()):
        return rf"\texttt{{U+{ord(character):04X}}}"  # what is left would be another sign or number
    command = _RAISED.get(decomposition(character).partition(" ")[0], "")
    text = "".join(_SPECIAL.get(c, c) for c in plain)
    return f"{command}{{{text}}}" if command else text
