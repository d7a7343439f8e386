"""The contents of the page: everything that its templates and its script show. No torch."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harness.report import render
from harness.report.build import Report, ReportOptions, Section, make_report
from harness.report.html.cells import CellPages
from harness.report.html.diagram import Diagram, diagram
from harness.report.html.trainings import Trainings, cost_table
from harness.report.layout import finding_table
from harness.report.table import Text, TextTable
from harness.results.findings import Finding, load_findings
from harness.results.rows import METRICS, RunResults
from harness.results.run_record import RunRecord
from harness.safe_io import MOST_SUITE, read_text
from harness.store import Failure, Store
from harness.suite.settings import LAST

COPIES = ("latex", "markdown", "csv")
STATISTICS_UP_TO = 40
"""With more methods the page has statistics only if the suite or the command asks for them."""
LOG_LINES = 200
LOG_BYTES = 40_000
MOST_FAILURES = 200
WIDEST = 60
"""A table beside the main one with more columns is left out of the page."""
MOST_ROWS = 500
LARGEST_FIGURE = 1_500_000
"""Bytes of a figure that the page takes in."""
_FIGURE_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


@dataclass(frozen=True)
class LinkedText:
    """One entry of a table: its text, the address of the dialog behind it, and its status."""

    text: Text
    link: str = ""
    status: str = ""


@dataclass(frozen=True)
class PageTable:
    """One main table of the page, with the tables and diagrams beside it.

    Attributes:
        headings: text and order of the first sorting (``words`` for text) of each column.
    """

    name: str
    title: str
    main: TextTable
    headings: tuple[tuple[str, str], ...]
    rows: tuple[tuple[LinkedText, ...], ...]
    beside: tuple[TextTable, ...]
    diagrams: tuple[tuple[str, Diagram], ...]


@dataclass(frozen=True)
class PageFinding:
    """An analysis: its table, and its figure as a data URI, empty without one."""

    table: TextTable
    figure: str
    finding: Finding


@dataclass(frozen=True)
class Page:
    """The whole page; ``data`` is for its script, ``curves`` and ``copies`` for what it reads only on demand."""

    record: RunRecord
    results: RunResults
    status: str
    counts: tuple[str, ...]
    tables: tuple[PageTable, ...]
    costs: TextTable
    findings: tuple[PageFinding, ...]
    failures: tuple[tuple[str, Failure], ...]
    components: tuple[tuple[str, str, str], ...]
    suite: str
    log: str
    data: Mapping[str, Any]
    curves: Mapping[str, Any]
    copies: tuple[Mapping[str, str], ...]


def build_page(record: RunRecord, results: RunResults, store: Store, options: ReportOptions | None = None) -> Page:
    """Gather a run, finished or not, from its folder and the store.

    Args:
        options: what the tables show. Without: both checkpoint rules, and statistics unless there are too many methods.
    """
    report = make_report(results, _options(results, options))
    folder = store.runs / record.id
    titles = {key: title for cell in record.cells for key, title in cell.needs.items()}
    costs = {key: store.record(key) for key in titles}
    trainings = Trainings(record, results, store, costs)
    cells = CellPages(results, trainings)
    tables = [{"name": f"t{n}", "cells": cells.section(s)} for n, s in enumerate(report.sections, start=1)]
    curves = trainings.curves()
    columns = report.sections[0].table.columns
    data = {
        "run": record.id,
        "seeds": list(results.seeds),
        "methods": list(results.methods),
        "columns": [{"label": c.label, "metric": METRICS.get(c.metric, c.metric)} for c in columns],
        "tables": tables,
        "texts": cells.texts.items,
        "settings": trainings.settings.items,
        "differences": cells.differences.items,
        "trainings": trainings.facts,
        "reference": results.reference,
    }
    bare = [replace(section, beside=(), statistics=None, published=None) for section in report.sections]
    return Page(
        record=record,
        results=results,
        status=_status(record),
        counts=tuple(_counts(record, results, report.sections[0])),
        tables=tuple(_table(section, f"t{number}") for number, section in enumerate(report.sections, start=1)),
        costs=cost_table(titles, costs),
        findings=tuple(page_finding(finding, place) for finding, place in load_findings(folder)),
        failures=tuple(_failures(record, titles)),
        components=tuple(sorted(trainings.components)),
        suite=_suite(folder / "suite.yaml"),
        log=_tail(folder / "workers.log"),
        data=data,
        curves=curves,
        copies=tuple({style: render(Report(results, (section,)), style) for style in COPIES} for section in bare),
    )


def _options(results: RunResults, options: ReportOptions | None) -> ReportOptions:
    """Fill in what the options leave open: the suite's own checkpoint rule first, then each that it does not use."""
    options = options or ReportOptions()
    if options.checkpoints == ("suite",):
        used = {entry.select.checkpoint for entry in results.entries}
        others = (rule for rule in ("best-val", LAST) if used != {rule})
        options = replace(options, checkpoints=("suite", *others))
    if options.statistics is None and len(results.methods) <= STATISTICS_UP_TO:
        options = replace(options, statistics=True)
    return options


def _table(section: Section, name: str) -> PageTable:
    labels = {(column.dataset, column.split): column.label for column in section.table.columns}
    families = section.statistics.families if section.statistics else ()
    drawn = [(f"Critical-difference diagram: {family.label}", diagram(family.ranking)) for family in families]
    rules = {row.checkpoint for row in section.table.rows}
    title = "Results" if LAST in rules else "Results at the best validation score"
    return PageTable(
        name=name,
        title="Results at the last epoch" if rules == {LAST} else title,
        main=section.main,
        headings=tuple(_headings(section)),
        rows=tuple(tuple(_entry(name, labels, text) for text in texts) for texts in section.main.rows),
        beside=tuple(map(fitting, section.beside)),
        diagrams=tuple((title, figure) for title, figure in drawn if figure is not None),
    )


def _entry(name: str, labels: Mapping[tuple[str, str], str], text: Text) -> LinkedText:
    row = text.row
    if row is None:
        return LinkedText(text)
    status = "provisional" if row.status == "ok" and row.provisional else row.status
    label = labels[row.dataset, row.split]
    return LinkedText(text, f"#{name}/{quote(label, safe='')}/{quote(row.method, safe='')}", status)


def _headings(section: Section) -> list[tuple[str, str]]:
    """Return the header; a column of values is first sorted with the best on top."""
    table, headings = section.main, []
    for position, text in enumerate(table.header):
        rows = [entries[position].row for entries in table.rows]
        datasets = [section.table.results.dataset(row.dataset) for row in rows if row is not None]
        first = "ascending" if datasets and not datasets[0].higher_is_better else "descending"
        headings.append((text, "words" if position < table.words else first))
    return headings


def fitting(table: TextTable) -> TextTable:
    """Return a table without its entries if it is too wide for the page."""
    if len(table.header) <= WIDEST:
        return table
    sentence = f"A table of {len(table.header)} columns, too wide for this page; the other formats have it."
    return TextTable(table.title, caption=(sentence, *table.caption))


def page_finding(finding: Finding, folder: Path) -> PageFinding:
    """Return an analysis as the page shows it."""
    table, figure = finding_table(finding, folder), _figure([folder / name for name in finding.figures])
    caption = table.caption
    if len(table.rows) > MOST_ROWS:
        caption += (f"The first {MOST_ROWS} of {len(table.rows)} rows; table.csv in the run's folder has all.",)
    if finding.figures and not figure:
        caption += (f"The figure is too large for this page: {folder.name}/{finding.figures[0]}.",)
    title = table.title.removeprefix("Analysis: ")
    return PageFinding(replace(table, title=title, rows=table.rows[:MOST_ROWS], caption=caption), figure, finding)


def _figure(paths: Sequence[Path]) -> str:
    """Return the first file that a page can show and that is not too large, as a data URI.

    A figure is shown as an image and not as part of the page, so that nothing in it can run or refer to anything.
    """
    for suffix, kind in _FIGURE_TYPES.items():
        for path in paths:
            fits = path.suffix == suffix and path.is_file() and not path.is_symlink()
            if fits and path.stat().st_size <= LARGEST_FIGURE:
                return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
    return ""


def _status(record: RunRecord) -> str:
    return {
        "failed": "finished, some cells without a result",
        "running": "running, or ended without notice",
    }.get(record.status, record.status)


def _counts(record: RunRecord, results: RunResults, first: Section) -> list[str]:
    """Count the run's cells by status, and the provisional entries of the first table."""
    by_cell = {row.cell or row.coordinates: row.status for row in results.rows}
    statuses = Counter(by_cell.values())
    waiting = len(record.cells) - len(by_cell)
    counts = [f"{statuses.pop('ok', 0)} of {len(record.cells)} cells with a result"]
    counts += [f"{count} {status}" for status, count in statuses.items()]
    counts += [f"{waiting} not run yet"] if waiting > 0 else []
    provisional = sum(row.provisional for row in first.table.rows)
    return counts + ([f"{provisional} entries provisional (search unfinished)"] if provisional else [])


def _failures(record: RunRecord, titles: Mapping[str, str]) -> list[tuple[str, Failure]]:
    """List the failures with the titles of their stages, those that were skipped because of others last."""
    failures = [(titles.get(key, key), failure) for key, failure in record.failures.items()]
    return sorted(failures, key=lambda item: item[1].status == "skipped")


def _suite(path: Path) -> str:
    try:
        return read_text(path, MOST_SUITE)
    except (OSError, ValueError):
        return ""


def _tail(path: Path) -> str:
    """Return the last lines of a log."""
    with suppress(OSError), path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - LOG_BYTES))
        return "\n".join(stream.read().decode("utf-8", "replace").splitlines()[-LOG_LINES:])
    return ""
