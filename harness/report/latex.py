"""The report as LaTeX: one ``table`` environment a section, with booktabs and nothing else beyond LaTeX itself."""

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
    """The whole report; needs ``\\usepackage{booktabs}``."""
    head = f"% {_comment(report.title)}\n% needs \\usepackage{{booktabs}}"
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
    return "\n".join(_table(block.grid, [f"{block.title}.", *block.sentences], f"{name}-{_slug(block.title).lower()}"))


def _table(grid: Grid, sentences: Sequence[str], name: str) -> list[str]:
    return [
        r"\begin{table}[t]",
        r"\centering",
        r"\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{' '.join(escape(sentence) for sentence in sentences)}}}",
        rf"\label{{{name}}}",
        *([r"\footnotesize\setlength{\tabcolsep}{4pt}"] if len(grid.header) > WIDE else []),
        rf"\begin{{tabular}}{{{'l' * grid.words + 'c' * (len(grid.header) - grid.words)}}}",
        r"\toprule",
        _line([escape(heading) for heading in grid.header]),
        r"\midrule",
        *(_line([_entry(text) for text in row]) for row in grid.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *_footnotes(grid),
        r"\end{table}",
    ]


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
