"""The contents of the page: everything that its templates and its script show. No torch."""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.report import render
from harness.report.build import ReportOptions, RunReport, Section, make_report
from harness.report.html.diagram import Diagram, diagram
from harness.report.html.dialogs import Dialogs, kind_of
from harness.report.html.forest import Forest, forests
from harness.report.layout import finding_table
from harness.report.statistics_tables import rank_sentences, related_sentences
from harness.report.table import NOTHING, Text, TextTable
from harness.results.rows import METRICS, RunResults
from harness.results.run_record import Finding, RunRecord, load_findings
from harness.results.selection import lost_candidates
from harness.safe_io import size_text
from harness.store import STAGE_KINDS, Store
from harness.suite.settings import LAST

COPIES = {"latex": "LaTeX", "markdown": "Markdown", "csv": "CSV"}
STATISTICS_UP_TO = 40
"""With more methods the page has statistics only if the suite or the command asks for them."""
LOG_LINES, LOG_BYTES = 200, 40_000
LARGEST_FIGURE = 1_500_000
"""Bytes of a figure that the page takes in."""


@dataclass(frozen=True)
class PageTable:
    """The main table under one checkpoint rule, with the drawings beside it.

    Attributes:
        rule: where the checkpoints are, in words.
        labels: (dataset, split) -> label of the column.
        forests: the picture of the table; empty without statistics.
        diagrams: title, drawing, and what the tests found.
        copies: the table in other formats.
    """

    name: str
    rule: str
    section: Section
    labels: Mapping[tuple[str, str], str]
    forests: tuple[Forest, ...]
    diagrams: tuple[tuple[str, Diagram, str], ...]
    copies: Mapping[str, str]


@dataclass(frozen=True)
class PageFinding:
    """An analysis: its table, and its figure as a data URI, empty without one."""

    table: TextTable
    figure: str
    finding: Finding


@dataclass(frozen=True)
class PageFailure:
    """One reason in one method, or in the stages that methods share, with the stages that it ended."""

    status: str
    title: str
    text: str
    stages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """The whole page; ``data`` is for its script, ``curves`` for what it reads only on demand."""

    record: RunRecord
    results: RunResults
    counts: tuple[str, ...]
    tables: tuple[PageTable, ...]
    costs: TextTable
    findings: tuple[PageFinding, ...]
    failures: tuple[PageFailure, ...]
    components: tuple[tuple[str, str, str], ...]
    suite: str
    log: str
    data: Mapping[str, Any]
    curves: Mapping[str, Any]


def build_page(record: RunRecord, results: RunResults, store: Store, options: ReportOptions | None = None) -> Page:
    """Gather a run, finished or not, from its folder and the store.

    Args:
        options: what the tables show. Without: both checkpoint rules, and statistics unless there are too many methods.
    """
    report = make_report(results, _options(results, options))
    folder = store.runs / record.id
    titles = {key: title for cell in record.cells for key, title in cell.needs.items()}
    costs = {key: store.record(key) for key in titles}
    dialogs = Dialogs(record, results, store, costs)
    named = [(f"t{number}", section) for number, section in enumerate(report.sections, start=1)]
    data = {
        "run": record.id,
        "seeds": list(results.seeds),
        "methods": list(results.methods),
        "columns": [
            {"label": c.label, "metric": METRICS.get(c.metric, c.metric)} for c in report.sections[0].table.columns
        ],
        "tables": [{"name": name, "cells": dialogs.section(section)} for name, section in named],
        "texts": list(dialogs.texts),
        "settings": list(dialogs.settings),
        "differences": list(dialogs.differences),
        "trainings": dialogs.trainings,
        "reference": results.reference,
    }
    return Page(
        record=record,
        results=results,
        counts=tuple(_counts(record, results)),
        tables=tuple(_table(name, section) for name, section in named),
        costs=cost_table(titles, costs),
        findings=tuple(page_finding(finding, place) for finding, place in load_findings(folder)),
        failures=page_failures(record, results),
        components=tuple(sorted(dialogs.components)),
        suite=_text(folder / "suite.yaml"),
        log="\n".join(_text(folder / "workers.log", LOG_BYTES).splitlines()[-LOG_LINES:]),
        data=data,
        curves=dialogs.curves,
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


def _table(name: str, section: Section) -> PageTable:
    diagrams = []
    for family in section.statistics.families if section.statistics else ():
        told = " ".join([*rank_sentences(family.ranking), *related_sentences(family)])
        if (figure := diagram(family.ranking)) is not None:
            diagrams.append((f"Critical-difference diagram: {family.label}", figure, told))
    rules = {row.checkpoint for row in section.table.rows}
    rule = "each method's own checkpoint" if LAST in rules else "the best validation score"
    bare = RunReport(section.table.results, (replace(section, beside=(), statistics=None, published=None),))
    return PageTable(
        name=name,
        rule="the last epoch" if rules == {LAST} else rule,
        section=section,
        labels={(column.dataset, column.split): column.label for column in section.table.columns},
        forests=tuple(forests(section.table, section.statistics)) if section.statistics else (),
        diagrams=tuple(diagrams),
        copies={style: render(bare, style) for style in COPIES},
    )


def page_finding(finding: Finding, folder: Path) -> PageFinding:
    """Return an analysis as the page shows it."""
    table = finding_table(finding, folder)
    return PageFinding(
        replace(table, title=table.title.removeprefix("Analysis: ")),
        _figure([folder / name for name in finding.figures]),
        finding,
    )


def page_failures(record: RunRecord, results: RunResults) -> tuple[PageFailure, ...]:
    """Gather what failed: skipped stages last, before them the configurations of searches that lack values."""
    titles = {key: title for cell in record.cells for key, title in cell.needs.items()}
    methods = {key: cell.method for cell in record.cells for key in (cell.train, cell.score)}
    groups = defaultdict[tuple[str, str, str], list[str]](list)
    for key, failure in record.failures.items():
        place = methods.get(key) or kind_of(titles.get(key, key))
        groups[place, failure.status, failure.reason].append(key)
    found = []
    for (place, status, reason), keys in groups.items():
        stages, first = tuple(titles.get(key, key) for key in keys), record.failures[keys[0]]
        name = stages[0] if len(stages) == 1 else f"{place}, {len(stages)} stages"
        found.append(PageFailure(status, f"{name}: {reason}{first.remark}", first.traceback or reason, stages))
    lost = (told for status, told in lost_candidates(results) if status == "undefined")  # no stage of theirs failed
    found += [PageFailure("undefined", told, told) for told in lost]
    return tuple(sorted(found, key=lambda failure: failure.status == "skipped"))


def _figure(paths: Sequence[Path]) -> str:
    """Return the first file that a page can show and that is not too large, as a data URI.

    A figure is shown as an image and not as part of the page, so that nothing in it can run or refer to anything.
    """
    for suffix, kind in ((".svg", "svg+xml"), (".png", "png")):
        for path in paths:
            fits = path.suffix == suffix and path.is_file() and not path.is_symlink()
            if fits and path.stat().st_size <= LARGEST_FIGURE:
                return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
    return ""


def _counts(record: RunRecord, results: RunResults) -> list[str]:
    """Count the run's cells by status; one with a value on any test split has a result."""
    by_cell: dict[Any, str] = {}
    for row in results.rows:
        if row.split in results.dataset(row.dataset).test_splits and by_cell.get(row.coordinates) != "ok":
            by_cell[row.coordinates] = row.status
    statuses = Counter(by_cell.values())
    waiting = len(record.cells) - len(by_cell)
    counts = [f"{statuses.pop('ok', 0)} of {len(record.cells)} cells with a result"]
    counts += [f"{count} {status}" for status, count in statuses.items()]
    return counts + ([f"{waiting} not run yet"] if waiting > 0 else [])


def cost_table(titles: Mapping[str, str], records: Mapping[str, Mapping[str, Any]]) -> TextTable:
    """Lay out the cost of the stages of each kind, in the order of the pipeline.

    Args:
        titles: stage key -> title, whose first word is the kind.
        records: stage key -> the store's record of its execution, in this run or an earlier one.
    """
    kinds: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in STAGE_KINDS}
    for key, title in titles.items():
        kinds.setdefault(kind_of(title), []).append(records.get(key, {}))
    rows = []
    for kind, stages in kinds.items():
        wall, cpu, peaks = (
            [n for stage in stages if isinstance(n := stage.get(name), (int, float))]
            for name in ("seconds", "cpu_seconds", "peak_memory")
        )
        count = str(len(stages)) if len(wall) == len(stages) else f"{len(stages)} ({len(wall)} timed)"
        peak = Text(size_text(max(peaks))) if any(peaks) else NOTHING
        rows += [(Text(kind), Text(count), Text(f"{sum(wall):,.1f}"), Text(f"{sum(cpu):,.1f}"), peak)] if stages else []
    return TextTable("Stage timings", ("Stage", "Count", "Seconds", "CPU seconds", "Peak memory"), tuple(rows))


def _text(path: Path, most: int | None = None) -> str:
    """Return a text file, or so many bytes of its end; nothing where it cannot be read."""
    with suppress(OSError), path.open("rb") as stream:
        stream.seek(0 if most is None else max(0, path.stat().st_size - most))
        return stream.read().decode("utf-8", "replace")
    return ""
