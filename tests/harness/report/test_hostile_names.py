"""Names and reasons from another's run are text in every format: LaTeX, Markdown, CSV, HTML and on the terminal."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from html_kit import Reader, store_run
from results_kit import build_run

from harness.report import make_report, render
from harness.report.html.page import render_page
from harness.report.html.view import build_page
from harness.results.rows import DatasetFacts, RunResults
from harness.results.run_record import Finding, load_findings, save_finding
from harness.safe_io import json_text, visible
from harness.store import Store

LATEX = r"\input{/etc/passwd}\write18{x}^^5cinput $x$ %"
FORMULA = "=cmd|'/C calc'!A0"
MARKUP = '"><img src=x onerror=alert(1)> [a](javascript:x) `b` | c'
REASON = "failed: Error: \x1b]0;owned\x07\x1b[2J\u202e =1+1\n\\input{x}\n<script>alert(1)</script>"


@pytest.fixture(scope="module")
def run() -> RunResults:
    datasets = (DatasetFacts(FORMULA, notes=(MARKUP,), licence=MARKUP, citation=LATEX),)
    cells = {name: {FORMULA: [0.5, 0.6, REASON]} for name in (LATEX, FORMULA, MARKUP, "+1", "@x", "-2")}
    made = build_run(cells, datasets=datasets, run="20260101-000000-x-0000", overrides=(MARKUP, LATEX))
    rows = (replace(row, traceback=REASON) if row.status == "failed" else row for row in made.rows)
    return made.with_rows(rows)


def test_latex_has_no_command_of_theirs(run: RunResults) -> None:
    text = render(make_report(run), "latex")
    assert not re.search(r"\\(input|write|immediate)", text)
    assert "^^" not in text
    assert all(line.isprintable() for line in text.splitlines()), "a line break would end a comment"


def test_markdown_has_no_markup_of_theirs(run: RunResults) -> None:
    text = render(make_report(run), "markdown")
    assert "<" not in text
    assert "](" not in text.replace(r"\](", "")
    assert r"\[a\](javascript" in text
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("| ")}
    assert len(widths) == 1, "a bar in a name makes no column"


def test_analyses_have_no_file_from_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "analyses" / "01-x"
    folder.mkdir(parents=True)
    finding = Finding("x", "cmd", columns=("=1+1", "b"), rows=(("@x", -1.5), ("-", None)), figures=())
    save_finding(finding, folder)
    assert (folder / "table.csv").read_text() == "=1+1,b\n@x,-1.5\n-,\n"
    assert load_findings(tmp_path)[0][0] == finding
    for wrong in (
        replace(finding, figures=("../../../secret.png",)),
        replace(finding, figures=("/etc/x.svg",)),
        replace(finding, rows=(("a",),)),
        replace(finding, label=3),
        replace(finding, rows=(("a", [1]),)),
    ):
        (folder / "finding.json").write_text(json_text(wrong))
        assert load_findings(tmp_path) == []


def test_a_terminal_is_not_steered(run: RunResults) -> None:
    for style in ("plain", "json", "csv", "markdown", "latex"):
        text = visible(render(make_report(run), style))
        assert not {"\x1b", "\x07", "\u202e", "\r"} & set(text), style


def test_the_page_has_no_element_of_theirs_and_leads_nowhere(run: RunResults, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    record, results = store_run(run, store)
    page = Reader(render_page(build_page(record, results, store)))
    assert not [tag for tag, _ in page.elements if tag in ("iframe", "object", "embed", "link", "base", "img")]
    assert [given for tag, given in page.elements if tag == "form"] == [{"method": "dialog", "class": "bar"}]
    attributes = [(name, value or "") for _, given in page.elements for name, value in given.items()]
    assert not [name for name, _ in attributes if name.startswith("on")]
    leading = [value for name, value in attributes if name in ("href", "src", "action", "xlink:href")]
    assert leading
    assert all(value.startswith(("#", "data:image/")) for value in leading)
