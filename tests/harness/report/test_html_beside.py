"""What stands beside the tables of the HTML report: diagrams, blocks, analyses."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from html import unescape

import pytest
from html_kit import store_run
from results_kit import build_run

from harness.report import ReportOptions
from harness.report.html.diagram import AXIS, MOST, diagram
from harness.report.html.page import environment, render_page
from harness.report.html.view import build_page, page_finding
from harness.report.layout import finding_table
from harness.report.table import Text, TextTable
from harness.results.run_record import Finding, load_findings, save_finding
from harness.results.statistics import Ranking
from harness.safe_io import write_text


def ranked(ranks: dict[str, float], critical: float | None, *groups: tuple[str, ...]) -> Ranking:
    return Ranking(ranks, (0, 1), critical=critical, groups=groups)


def test_a_diagram_has_every_method_at_its_rank_and_a_bar_for_each_group() -> None:
    found = diagram(ranked({"A": 1.0, "B": 1.5, "C": 3.5, "D": 4.0}, 1.0, ("A", "B"), ("C", "D")))
    assert found is not None
    leads = [line.points for line in found.lines if line.kind == "lead"]
    start = leads[0][0][0]
    places = [(points[0][0] - start) / AXIS * 3 + 1 for points in leads]
    assert places == pytest.approx([1.0, 1.5, 3.5, 4.0])
    bars = [[x for x, _ in line.points] for line in found.lines if line.kind == "bar"]
    assert [[round((x - start) / AXIS * 3 + 1, 1) for x in bar] for bar in bars] == [[1.0, 1.5], [3.5, 4.0]]
    assert [label.text for label in found.labels][4:] == ["CD = 1.00", "A (1.00)", "B (1.50)", "C (3.50)", "D (4.00)"]
    heights = [points[-1][1] for points in leads]
    assert heights[0] < heights[1]
    assert heights[2] > heights[3]
    assert max(heights) < found.height


def test_no_diagram_where_it_would_say_nothing() -> None:
    assert diagram(ranked({"A": 1.0, "B": 2.0}, None)) is None
    assert diagram(ranked({}, 1.0)) is None
    assert diagram(ranked({"A": 1.0, "B": 2.0}, 3.0, ("A", "B"))) is None
    told = ranked({"A": 1.0, "B": 2.0, "C": 3.0}, 1.0)
    assert diagram(replace(told, p=0.68)) is None
    assert diagram(replace(told, p=0.01)) is not None
    assert diagram(ranked({f"M{n}": float(n) for n in range(MOST + 1)}, 1.0)) is None


def test_long_names_are_cut_and_stay_inside() -> None:
    found = diagram(ranked({"x" * 100: 1.0, "B": 2.0}, 1.0))
    assert found is not None
    name = next(label for label in found.labels if label.text.startswith("x"))
    assert "…" in name.text
    assert name.x - 6.5 * len(name.text) > 0


def test_a_report_with_enough_datasets_has_a_diagram(store) -> None:
    cells = {m: {f"D{d}": [0.5 + 0.1 * n + 0.01 * d] * 3 for d in range(6)} for n, m in enumerate("ABCD")}
    page = build_page(*store_run(build_run(cells), store), store)
    ((title, drawn, told),) = page.tables[0].diagrams
    assert title.startswith("Critical-difference diagram")
    assert "D (1.00)" in [label.text for label in drawn.labels]
    assert '<svg viewBox="0 0' in render_page(page)
    assert "Friedman's test, 4 methods on 6 datasets: chi-square(3) = 18.00, p < 0.001." in told
    assert "The p-value is rough for fewer than 10 datasets or 6 methods." in told
    assert told in unescape(render_page(page))


def test_the_picture_has_the_intervals_of_the_statistics_and_links_to_the_details(store) -> None:
    cells = {"ERM": [0.5, 0.52, 0.54], "Far": [0.7, 0.72, 0.75], "Near": [0.5, 0.6, 0.4], "Lost": [0.5, 0.52, None]}
    run = build_run(
        {name: {"A": values} for name, values in (cells | {"Bad": ["failed: x"] * 3}).items()}, reference="ERM"
    )
    page = build_page(*store_run(run, store), store)
    table = page.tables[0]
    (panel,) = table.forests
    erm, far, near, _, bad = panel.marks
    assert [mark.kind for mark in panel.marks] == ["reference", "apart", "", "", ""]
    assert [mark.text for mark in panel.marks] == ["52.00", "72.33", "50.00", "51.00 (n=2/3)", "failed: x"]
    assert (bad.dot, bad.low, bad.high) == (None, None, None)
    first, last = panel.ticks[0], panel.ticks[-1]

    def number(place: float | None) -> float:
        assert place is not None
        return first[0] + (last[0] - first[0]) * (place - first[1]) / (last[1] - first[1])

    shown = {row.method: row.mean for row in table.section.statistics.rows}
    for mark in (erm, far, near):
        mean = shown[mark.name]
        assert (number(mark.low), number(mark.dot), number(mark.high)) == pytest.approx(
            (mean.low, mean.estimate, mean.high)
        )
    assert panel.reference == erm.dot
    assert "difference to ERM +20.33 [" in far.told
    made = render_page(page)
    assert '<a href="#t1/A/Far" class="apart">' in made
    assert f"<title>Far: {far.told}</title>" in unescape(made)
    assert "Dashed: ERM; a filled dot" in made


def test_a_picture_stays_on_the_scale_of_its_metric_and_needs_statistics(store) -> None:
    record, run = store_run(build_run({"ERM": {"A": [0.1, 0.9]}, "One": {"A": [0.5, None]}}, seeds=(1, 2)), store)
    (panel,) = build_page(record, run, store).tables[0].forests
    assert [tick for tick, _ in panel.ticks] == [0, 20, 40, 60, 80, 100]
    assert (panel.marks[0].low, panel.marks[0].high) == (panel.ticks[0][1], panel.ticks[-1][1])
    assert panel.marks[1].low is None
    assert build_page(record, run, store, ReportOptions(statistics=False)).tables[0].forests == ()


def test_tables_beside_are_open_where_they_mark_something(store) -> None:
    run = build_run({"ERM": {"A": [0.5, 0.52, 0.54]}, "Far": {"A": [0.7, 0.72, 0.75]}}, reference="ERM")
    made = render_page(build_page(*store_run(run, store), store))
    assert re.findall(r'<details class="printed" open>\n<summary>(.*?)</summary>', made) == ["Differences to ERM"] * 2
    assert '<details class="printed">\n<summary>Confidence intervals</summary>' in made


def test_footnotes_of_a_block_stand_under_it() -> None:
    rows = ((Text("D"), Text("not comparable", notes=(1,))),)
    table = TextTable("Published", ("Dataset", "Verdict"), rows, footnotes=("differs in <data>",))
    page = environment().from_string('{% from "grid.html.jinja" import text_table %}{{ text_table(table) }}')
    made = page.render(table=table)
    assert 'not comparable<sup><span class="sr">note </span>1</sup>' in made
    assert "<li>differs in &lt;data&gt;</li>" in made


def test_analyses_with_figures(tmp_path, monkeypatch) -> None:
    base = Finding("Distances", "cmd", {"moments": 5}, opens=("test labels",))
    files = ("figure.svg", "figure.pdf", "figure.png")
    folders = [tmp_path / "analyses" / name for name in ("01-a", "02-b")]
    rows = (("ERM", "a", 0.25, 52.5), ("IRM", "b", None, 100.0))
    table = {"columns": ("Method", "Class", "CMD", "score, %"), "rows": rows, "notes": ("A note.",), "figures": files}
    save_finding(replace(base, **table), folders[0])
    save_finding(replace(base, status="failed", reason="ValueError: no\nmore", traceback="Traceback"), folders[1])
    write_text(folders[0] / "figure.svg", "<svg/>" * 10)
    write_text(folders[0] / "figure.png", "png")

    def views():
        return [page_finding(*found) for found in load_findings(tmp_path)]

    good, bad = views()
    assert good.table.title == "Distances [cmd(moments=5)]"
    assert good.table.words == 2
    assert [[text.text for text in row] for row in good.table.rows] == [
        ["ERM", "a", "0.250", "52.50"],
        ["IRM", "b", "–", "100.00"],
    ]
    assert base64.b64decode(good.figure.removeprefix("data:image/svg+xml;base64,")) == b"<svg/>" * 10
    assert good.table.caption == ("A note.", "Opens test labels, which no method sees.")
    assert finding_table(replace(base, columns=("a\nb",)), folders[0]).header == ("a b",)
    drawn = finding_table(replace(base, notes=("A note.",), figures=files), folders[0])
    assert (drawn.caption, drawn.figure) == (good.table.caption, str(folders[0] / "figure.svg")), "a figure alone"
    assert (bad.table.caption, bad.finding.traceback, bad.figure) == (("failed: ValueError: no more",), "Traceback", "")
    monkeypatch.setattr("harness.report.html.view.LARGEST_FIGURE", 10)
    assert views()[0].figure.startswith("data:image/png;base64,")
    monkeypatch.setattr("harness.report.html.view.LARGEST_FIGURE", 1)
    assert not views()[0].figure


def test_an_analysis_that_failed_for_some_cells_shows_the_others(store) -> None:
    record, run = store_run(build_run({"ERM": {"A": [0.5]}}, seeds=(1,)), store)
    table = {"columns": ("Method", "CMD"), "rows": (("ERM", 0.25),), "notes": ("A note.",)}
    failed = Finding("Distances", "cmd", status="failed", reason="cmd of IRM on A: KeyError", **table)
    save_finding(failed, store.runs / record.id / "analyses" / "01-a")
    made = render_page(build_page(record, run, store))
    shown = made.partition('<section id="analyses"')[2].partition("</section>")[0]
    assert "cmd of IRM on A: KeyError" in shown
    assert ">0.250</td>" in shown
    assert "A note." in shown
