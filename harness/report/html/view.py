"""The view model of the HTML report: everything that its templates and its script show. No torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harness.report.block import Block
from harness.report.build import Options, Report, Section, make_report
from harness.report.caption import METRICS
from harness.report.html.beside import FindingView, diagrams, finding_views, shown_blocks
from harness.report.html.cells import Cells
from harness.report.html.diagram import Diagram
from harness.report.html.settings import Settings
from harness.report.html.timing import StageCost, stage_costs
from harness.report.html.trainings import Trainings
from harness.report.layout import Text
from harness.report.render import render
from harness.results.rows import LAST, RunResults
from harness.results.run_record import RunRecord
from harness.results.selection import ScoreTable
from harness.safe_io import MOST_SUITE, parse_yaml, read_text
from harness.store import Failure, Store

COPIES = ("latex", "markdown", "csv")
STATISTICS_UP_TO = 40
"""With more methods the page has statistics only where the suite or the command asks for them."""
LOG_LINES = 200
LOG_BYTES = 40_000
MOST_FAILURES = 200


@dataclass(frozen=True)
class Entry:
    """One entry of a table: the grid's text, the address of what stands behind it, and its status."""

    text: Text
    link: str = ""
    status: str = ""


@dataclass(frozen=True)
class Heading:
    """A column's heading, and the order of its first sorting (``words`` for text)."""

    text: str
    first: str


@dataclass(frozen=True)
class TableView:
    """One table of the page, with the tables and diagrams beside it."""

    name: str
    title: str
    section: Section
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Entry, ...], ...]
    blocks: tuple[Block, ...]
    diagrams: tuple[tuple[str, Diagram], ...]


@dataclass(frozen=True)
class Failed:
    """One stage without a result."""

    title: str
    status: str
    reason: str
    traceback: str


@dataclass(frozen=True)
class Page:
    """The whole page; ``data`` is for its script, ``curves`` and ``copies`` for what it reads only on demand."""

    record: RunRecord
    results: RunResults
    status: str
    counts: tuple[str, ...]
    tables: tuple[TableView, ...]
    costs: tuple[StageCost, ...]
    findings: tuple[FindingView, ...]
    failures: tuple[Failed, ...]
    more_failures: int
    components: tuple[tuple[str, str, str], ...]
    suite: str
    log: str
    data: Mapping[str, Any]
    curves: Mapping[str, Any]
    copies: tuple[Mapping[str, str], ...]


def build_page(record: RunRecord, results: RunResults, store: Store, options: Options | None = None) -> Page:
    """Gather a run, finished or not, from its folder and the store.

    Args:
        options: what the tables show. Without: both checkpoint rules, and statistics unless there are too many methods.
    """
    report = make_report(results, _options(results, options))
    folder = store.runs / record.id
    titles = {key: title for cell in record.cells for key, title in cell.needs.items()}
    costs = {key: store.record(key) for key in titles}
    suite = _read(folder / "suite.yaml")
    settings, trainings = Settings(_parsed(suite)), Trainings(record, results, store, costs)
    cells = Cells(ScoreTable(results), settings, trainings)
    made = [cells.section(section) for section in report.sections]
    drawn = trainings.curves()
    data = {
        "run": record.id,
        "seeds": list(results.seeds),
        "methods": list(results.methods),
        "columns": _columns(report.sections[0]),
        "tables": [{"name": f"t{n}", "cells": found} for n, found in enumerate(made, start=1)],
        "texts": cells.texts.items,
        "settings": settings.pool,
        "differences": cells.differences.items,
        "trainings": trainings.found,
        "reference": results.reference,
    }
    failures = _failures(record, titles)
    bare = [replace(section, blocks=(), statistics=None, published=None) for section in report.sections]
    return Page(
        record=record,
        results=results,
        status=_status(record),
        counts=tuple(_counts(record, results, report.sections)),
        tables=tuple(_table(section, number) for number, section in enumerate(report.sections, start=1)),
        costs=tuple(stage_costs(titles, costs)),
        findings=tuple(finding_views(folder)),
        failures=tuple(failures[:MOST_FAILURES]),
        more_failures=max(0, len(failures) - MOST_FAILURES),
        components=tuple((kind, name, source) for (kind, name), source in sorted(trainings.components.items())),
        suite=suite,
        log=_tail(folder / "workers.log"),
        data=data,
        curves=drawn,
        copies=tuple({style: render(Report(results, (one,)), style) for style in COPIES} for one in bare),
    )


def _options(results: RunResults, given: Options | None) -> Options:
    """The options with what a page shows where they leave it open."""
    options = given or Options()
    if options.checkpoints == ("suite",):
        options = replace(options, checkpoints=_checkpoints(results))
    if options.statistics is None and len(results.methods) <= STATISTICS_UP_TO:
        options = replace(options, statistics=True)
    return options


def _checkpoints(results: RunResults) -> tuple[str, ...]:
    """The suite's own checkpoint rule first, then each of the two that it does not use everywhere."""
    used = {entry.select.checkpoint for entry in results.entries}
    return ("suite", *(rule for rule in ("best-val", LAST) if used != {rule}))


def _columns(section: Section) -> list[dict[str, Any]]:
    return [
        {"label": column.label, "metric": METRICS.get(column.metric, column.metric)} for column in section.table.columns
    ]


def _table(section: Section, number: int) -> TableView:
    name = f"t{number}"
    labels = {(column.dataset, column.split): column.label for column in section.table.columns}
    rows = tuple(tuple(_entry(name, labels, text) for text in texts) for texts in section.grid.rows)
    return TableView(
        name=name,
        title=_title(section),
        section=section,
        headings=tuple(_headings(section)),
        rows=rows,
        blocks=tuple(shown_blocks(section)),
        diagrams=tuple(diagrams(section)),
    )


def _title(section: Section) -> str:
    rules = {row.checkpoint for row in section.table.rows}
    if rules == {LAST}:
        return "Results at the last epoch"
    return "Results" if LAST in rules else "Results at the best validation score"


def _entry(name: str, labels: Mapping[tuple[str, str], str], text: Text) -> Entry:
    row = text.row
    if row is None:
        return Entry(text)
    status = "provisional" if row.status == "ok" and row.provisional else row.status
    label = labels[row.dataset, row.split]
    return Entry(text, f"#{name}/{quote(label, safe='')}/{quote(row.method, safe='')}", status)


def _headings(section: Section) -> list[Heading]:
    """The grid's header; a column of values is first sorted with the best on top."""
    grid, found = section.grid, []
    for position, text in enumerate(grid.header):
        rows = [entry[position].row for entry in grid.rows if entry[position].row is not None]
        higher = all(section.table.results.dataset(row.dataset).higher_is_better for row in rows[:1] if row)
        found.append(Heading(text, "words" if position < grid.words else "descending" if higher else "ascending"))
    return found


def _status(record: RunRecord) -> str:
    return {
        "failed": "finished, some cells without a result",
        "running": "running, or ended without notice",
    }.get(record.status, record.status)


def _counts(record: RunRecord, results: RunResults, sections: tuple[Section, ...]) -> list[str]:
    """How the run's cells and the first table's entries stand."""
    by_cell = {row.cell or row.coordinates: row.status for row in results.rows}
    statuses = Counter(by_cell.values())
    waiting = len(record.cells) - len(by_cell)
    counts = [f"{statuses.pop('ok', 0)} of {len(record.cells)} cells with a result"]
    counts += [f"{count} {status}" for status, count in statuses.items()]
    counts += [f"{waiting} not run yet"] if waiting > 0 else []
    provisional = sum(row.provisional for row in sections[0].table.rows)
    return counts + ([f"{provisional} entries provisional (search unfinished)"] if provisional else [])


def _failures(record: RunRecord, titles: Mapping[str, str]) -> list[Failed]:
    """What failed, and after it what was skipped because of that."""
    found = [
        Failed(titles.get(key, key), failure.status, failure.reason + failure.remark, failure.traceback)
        for key, failure in ((key, Failure(**item)) for key, item in record.failures.items())
    ]
    return sorted(found, key=lambda failed: failed.status == "skipped")


def _read(path: Path) -> str:
    try:
        return read_text(path, MOST_SUITE)
    except (OSError, ValueError):
        return ""


def _tail(path: Path) -> str:
    """The last lines of a log."""
    with suppress(OSError), path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - LOG_BYTES))
        return "\n".join(stream.read().decode("utf-8", "replace").splitlines()[-LOG_LINES:])
    return ""


def _parsed(suite: str) -> Mapping[str, Any]:
    """The suite as plain data; empty where it cannot be read."""
    try:
        tree = parse_yaml(suite)
    except ValueError:
        return {}
    return tree if isinstance(tree, Mapping) else {}
