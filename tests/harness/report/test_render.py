"""The renderers: golden tables, escaping, failures, and nothing lost on narrow or piped output."""

import csv
import io
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from harness.errors import UserError
from harness.report import RENDERERS, ReportOptions, latex, make_report, markdown, render
from harness.report.plain import plain_table
from harness.report.table import Text, TextTable
from harness.report.terminal import print_report
from harness.results.rows import DatasetFacts
from harness.safe_io import parse_json

PLAIN = """\
Method   Environments  Configurations  SPMotif_0.60                            Two-piece (0.7, 0.9)
-------  ------------  --------------  --------------------------------------  --------------------
ERM      –             1               52.00 ± 2.00 +                          42.57 ± 0.51 +
EQuAD †  –             2               71.00 ± 1.00 *                          72.00 ± 2.65 *
IRM      random(2)     1               51.00 (n=1/3, 1 failed, 1 timeout) [1]  diverged [2]"""

MARKDOWN = """\
| Method | Environments | Configurations | SPMotif\\_0.60 | Two-piece (0.7, 0.9) |
| --- | --- | ---: | ---: | ---: |
| ERM | – | 1 | _52.00 ± 2.00_ | _42.57 ± 0.51_ |
| EQuAD † | – | 2 | **71.00 ± 1.00** | **72.00 ± 2.65** |
| IRM | random(2) | 1 | 51.00 (n=1/3, 1 failed, 1 timeout)[^1] | diverged[^2] |
"""

LATEX = r"""\begin{tabular}{llccc}
\toprule
Method & Environments & Configurations & SPMotif\_0.60 & Two-piece (0.7, 0.9) \\
\midrule
ERM & -- & 1 & \underline{52.00 $\pm$ 2.00} & \underline{42.57 $\pm$ 0.51} \\
EQuAD$^{\dagger}$ & -- & 2 & \textbf{71.00 $\pm$ 1.00} & \textbf{72.00 $\pm$ 2.65} \\
IRM & random(2) & 1 & 51.00 (n=1/3, 1 failed, 1 timeout)$^{1}$ & diverged$^{2}$ \\
\bottomrule
\end{tabular}}%
"""


def cells_of(run, **options):
    return [[text.text for text in row] for row in make_report(run, ReportOptions(**options)).sections[0].main.rows]


def test_golden_tables(paper_run):
    report = make_report(paper_run)
    assert plain_table(report.sections[0].main).startswith(f"{PLAIN}\n\n")
    assert MARKDOWN in render(report, "markdown")
    assert LATEX in render(report, "latex")


def test_footnotes_hold_the_full_reason(paper_run):
    report = make_report(paper_run)
    reason = "seed 2 failed: RuntimeError: sizes 3 & 4 differ, 50% of the #batch_x; seed 3 timeout"
    assert f"[1] IRM on SPMotif_0.60: {reason}" in render(report, "plain")
    assert "[2] IRM on Two-piece (0.7, 0.9): loss is NaN" in render(report, "plain")
    assert r"sizes 3 \& 4 differ, 50\% of the \#batch\_x" in render(report, "latex")
    assert "[^1]: IRM on SPMotif\\_0.60: seed 2 failed" in render(report, "markdown")


def test_one_seed_prints_n_and_no_spread(make_run):
    assert cells_of(make_run({"A": {"D": [0.7195]}}, seeds=(1,))) == [["A", "71.95 (n=1)"]]
    for style in ("plain", "markdown", "latex"):
        text = render(make_report(make_run({"A": {"D": [0.7195]}}, seeds=(1,))), style)
        assert "±" not in text
        assert r"\pm" not in text


def test_each_kind_of_gap_has_its_words(make_run):
    cells = {
        "A": {"D": [None, None]},
        "B": {"D": ["failed: ValueError: " + "x" * 60] * 2},
        "C": {"D": [math.nan, math.nan]},
        "E": {"D": ["memory: over 2 GB"] * 2},
        "F": {"D": ["skipped: needs encode"] * 2},
        "G": {"D": [0.5, None]},
        "H": {"D": ["failed: short"] * 2},
        "J": {"D": ["undefined: the validation score was undefined in every epoch"] * 2},
        "I": {"D": [0.5, 0.6]},
    }
    run = make_run(cells, seeds=(1, 2))
    report = make_report(run)
    shown = {row[0].text: (row[1].text, row[1].notes) for row in report.sections[0].main.rows}
    assert shown == {
        "A": ("missing", ()),
        "B": ("failed", (1,)),
        "C": ("undefined (1 class)", ()),
        "E": ("out of memory", (2,)),
        "F": ("skipped", (3,)),
        "G": ("50.00 (n=1/2, 1 missing)", ()),
        "H": ("failed: short", ()),
        "J": ("undefined", (4,)),
        "I": ("55.00 ± 7.07", ()),
    }


def test_zero_has_no_sign_and_an_average_keeps_its_oracle_flag(make_run):
    cells = {"A": {"D": [0.5], "E": [0.5]}, "B": {"D": [0.499999], "E": [0.5]}}
    run = make_run(cells, seeds=(1,), reference="A", facts={"B": {"oracle": ("base",)}})
    main = make_report(run, ReportOptions(differences=True, average=True)).sections[0].main
    assert main.rows[1][2].text == "+0.00 (n=1)"
    assert [row[-1].flags for row in main.rows] == ["", "‡"]


def test_one_reason_in_one_method_is_one_footnote(make_run):
    told = "RuntimeError: the sizes of tensors 3 and 4 do not agree here"
    cells = {name: {data: [f"failed: {told}"] * 2 for data in "DEFG"} for name in ("A", "B")}
    main = make_report(make_run(cells, seeds=(1, 2))).sections[0].main
    assert main.footnotes == (f"A on D, E, F, G: {told}", f"B on D, E, F, G: {told}")
    assert [[text.notes for text in row[1:]] for row in main.rows] == [[(1,)] * 4, [(2,)] * 4]


def test_a_remark_on_a_defined_value_becomes_a_footnote(make_run):
    run = make_run({"A": {"D": [0.5]}}, seeds=(1,))
    run = run.with_rows(replace(row, reason="mean over 10 of 12 tasks: the others have 1 class") for row in run.rows)
    assert "[1] A: mean over 10 of 12 tasks: the others have 1 class" in render(make_report(run), "plain")


def test_validation_and_difference_beside_the_test(make_run):
    run = make_run({"A": {"D": [0.5, 0.6]}, "B": {"D": [0.4, None]}}, seeds=(1, 2), reference="A")
    report = make_report(run, ReportOptions(validation=True, differences=True))
    assert report.sections[0].main.header == ("Method", "D", "D, validation", "D, Δ A")
    assert cells_of(run, validation=True, differences=True) == [
        ["A", "55.00 ± 7.07", "65.00 ± 7.07", "–"],
        ["B", "40.00 (n=1/2, 1 missing)", "50.00 (n=1/2)", "−10.00 (n=1/2)"],
    ]


def test_both_checkpoint_rules_in_one_report(make_run):
    run = make_run({"A": {"D": [0.5, 0.6]}, "B": {"D": ["failed: " + "y" * 50] * 2}}, seeds=(1, 2))
    report = make_report(run, ReportOptions(checkpoints=("best-val", "last")))
    assert "55.00 ± 7.07" in render(report, "plain")
    assert "50.00 ± 7.07" in render(report, "plain")
    assert {"[^1-1]", "[^2-1]"} <= set(re.findall(r"\[\^[^\]]+\]", render(report, "markdown")))
    assert {r"\label{tab:demo-1}", r"\label{tab:demo-2}"} <= set(re.findall(r"\\label\{.*?\}", render(report, "latex")))
    assert [row["checkpoint"] for row in parse_json(render(report, "json"))["rows"]] == ["best-val"] * 2 + ["last"] * 2


def test_a_method_that_a_dataset_lacks_is_a_dash(make_run):
    assert cells_of(make_run({"A": {"D": [0.5], "E": [0.5]}, "B": {"D": [0.5]}}, seeds=(1,)))[1][2] == "–"


@pytest.mark.parametrize("style", sorted(RENDERERS))
@pytest.mark.parametrize(
    "cells",
    [
        {"A": {"D": ["failed: boom"] * 2, "E": [math.nan] * 2}, "B": {"D": ["failed: boom"] * 2, "E": [math.nan] * 2}},
        {"A": {"D": [None, None]}},
        {"A": {}},
        {},
    ],
    ids=["all failed or undefined", "nothing run", "no dataset", "no method"],
)
def test_a_report_of_nothing_renders(make_run, style, cells):
    run = make_run(cells, seeds=(1, 2), reference="A")
    text = render(make_report(run, ReportOptions(("best-val", "last"), True, True, True)), style)
    assert text.endswith("\n")
    assert "nan" not in text.lower()


def test_an_unknown_format_is_refused(paper_run):
    with pytest.raises(UserError, match=r"'latx' \(did you mean 'latex'\?\); there are: plain, markdown, latex"):
        render(make_report(paper_run), "latx")


def test_csv_has_a_column_per_seed(paper_run):
    rows = list(csv.DictReader(io.StringIO(render(make_report(paper_run), "csv"))))
    assert len(rows) == 6
    irm = next(row for row in rows if row["method"] == "IRM" and row["n"] == "1")
    assert (irm["seed_1"], irm["seed_2"], irm["spread"], irm["status"]) == ("0.51", "", "", "failed")


# Escaping.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a&b%c_d#e$f{g}h", r"a\&b\%c\_d\#e\$f\{g\}h"),
        ("\\~^", r"\textbackslash{}\textasciitilde{}\textasciicircum{}"),
        ("[x] <y> |z|", r"{[}x{]} \textless{}y\textgreater{} \textbar{}z\textbar{}"),
        ("γ=0.1, Δ ± 1…", r"$\gamma$=0.1, $\Delta$ $\pm$ 1\ldots{}"),
        ("café cafe\u0301 ﬁ ①", "café café fi 1"),
        ("漢", r"\texttt{U+6F22}"),
        ("λ=10⁻⁴, x₁", r"$\lambda$=10\textsuperscript{$-$}\textsuperscript{4}, x\textsubscript{1}"),
        ("a≠b ⅓ ≁ ṡ", r"a$\neq$b \texttt{U+2153} \texttt{U+2241} s"),
        ("“so” it’s θ", r"``so'' it's $\theta$"),
        ("two\n\nlines", "two lines"),
        ("--epochs --- ''", "-{}-epochs -{}-{}- '{}'"),
    ],
)
def test_latex_escapes(text, expected):
    assert latex.escape(text) == expected


def test_markdown_escapes():
    assert markdown.escape("a|b*c_d`e<script>&[x]\nf") == r"a\|b\*c\_d\`e&lt;script&gt;&amp;\[x\] f"


def test_terminal_colours_in_a_reason_do_not_reach_the_output(make_run):
    run = make_run({"A\x1b[2J": {"D": ["failed: \x1b[31mred\x1b[0m\x07\ttext"]}}, seeds=(1,))
    for style in ("plain", "markdown", "latex"):
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", render(make_report(run), style))
    assert cells_of(run) == [["A", "failed: red text"]]


NASTY = r"a&b%c_d#e$f{g}h~i^j\k [x] <y> |z| \"q\" `r` é γ ± 漢 * 10⁻⁴ x₁ ≠ “q”"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path: Path, make_run):
    run = make_run(
        {NASTY: {NASTY: [0.5, 0.6]}, "[B]": {NASTY: ["failed: " + NASTY] * 2}, "*C": {NASTY: [0.7, 0.8]}},
        seeds=(1, 2),
        suite="my suite_é",
        datasets=(DatasetFacts(NASTY, variant=NASTY),),
        overrides=(NASTY,),
        facts={"*C": {"environments": NASTY, "shaped_by_validation": ("-",), "oracle": ("base",)}},
    )
    said = _typeset(tmp_path, render(make_report(run, ReportOptions(("best-val", "last"), True)), "latex"))
    assert "multiply defined" not in said


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_of_statistics_and_published_numbers_stays_on_the_page(tmp_path: Path, make_run):
    columns = [f"Two-piece (0.{n}, 0.9)" for n in (7, 8)] + [f"SPMotif-0.{n}0, a longer name" for n in range(3, 10)]
    names = ["ERM", "EQuAD, reweighted ERM", "A & B, 100 % of #1"]
    cells = {
        m: {c: [0.1 * k + 0.01 * (n + s) for s in range(3)] for n, c in enumerate(columns)} for k, m in enumerate(names)
    }
    cells["with gaps"] = {column: [0.5, 0.6, 0.7] for column in columns[:4]}
    run = make_run(cells, reference="ERM", published="equad-icml24", facts={name: {"settings": {}} for name in cells})
    made = make_report(run, ReportOptions(("best-val",), validation=True, average=True, statistics=True))
    rows = ((Text("x"), Text("1")),)
    figure = TextTable("A figure", ("a_b", "c"), rows, caption=("It says.",), figure="runs/my_run/figure.svg")
    said = _typeset(tmp_path, render(made, "latex") + "\n\n" + latex.latex_table(figure))
    assert len(made.sections[0].beside) == 6
    assert not re.search(r"Overfull \\hbox \((\d{2,})", said)


def _typeset(folder: Path, body: str) -> str:
    """What pdfLaTeX says of a document with this in it."""
    head = "\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n\\begin{document}\n"
    (folder / "t.tex").write_text(f"{head}{body}\\end{{document}}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


# Narrow, dumb and piped output.

WIDE = """
import sys
sys.path.insert(0, {tests!r})
from results_kit import build_run
from rich.console import Console
from harness.report import make_report
from harness.report.terminal import print_report
cells = {{
    f"Method number {{m}} with a long name": {{
        f"Dataset-{{d}} (0.7, 0.9)": [(m * 12 + d) / 100] * 2 for d in range(12)
    }}
    for m in range(8)
}}
print_report(make_report(build_run(cells, seeds=(1, 2))), Console({force}))
"""


def wide_output(force="", **env):
    code = WIDE.format(tests=str(Path(__file__).parents[1]), force=force)
    environment = {**os.environ, "COLUMNS": "40", "TERM": "dumb", **env}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True)
    return done.stdout.decode()


@pytest.mark.parametrize(
    ("force", "env"),
    [
        ("", {}),
        ("", {"TERM": "xterm-256color"}),
        ("force_terminal=True", {}),
        ("force_terminal=True", {"TERM": "xterm-256color"}),
    ],
    ids=["piped", "piped, colour terminal", "dumb terminal", "narrow terminal"],
)
def test_no_value_or_name_is_lost(force, env):
    text = wide_output(force, **env)
    lines = text.splitlines()
    header = next(line for line in lines if line.startswith("Method "))
    assert all(f"Dataset-{d} (0.7, 0.9)" in header for d in range(12))
    for m in range(8):
        (line,) = [one for one in lines if one.startswith(f"Method number {m} with a long name")]
        assert all(f"{m * 12 + d:.2f} ± 0.00" in line for d in range(12))
    assert "…" not in text


def test_a_wide_terminal_gets_a_table_with_bold_and_underline(paper_run):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=140, color_system="standard", _environ={})
    print_report(make_report(paper_run), console)
    text = stream.getvalue()
    assert re.search(r"\x1b\[1m *71\.00 ± 1\.00", text)
    assert re.search(r"\x1b\[4m *52\.00 ± 2\.00", text)
    assert "Bold: best, underlined: second best of a column; equal means share a mark." in text
    assert "[1] IRM on SPMotif_0.60" in text


def test_a_terminal_shows_no_pictures_for_words_between_colons(make_run):
    stream = io.StringIO()
    run = make_run({"A": {"D": ["failed: method.py:100: " + "x" * 40]}}, seeds=(1,))
    print_report(make_report(run), Console(file=stream, force_terminal=True, width=140, _environ={}))
    assert "method.py:100: x" in stream.getvalue()
