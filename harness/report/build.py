"""The contents of a report: a section for each checkpoint rule asked for, each a main table and those beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.report.layout import finding_json, finding_table, results_table
from harness.report.published import PublishedComparison, compare_published, published_table
from harness.report.statistics import Statistics, statistics, statistics_json
from harness.report.statistics_tables import statistics_tables
from harness.report.table import TextTable
from harness.results.aggregate import AverageColumn, ResultTable, averages, build_table
from harness.results.rows import RunResults
from harness.results.run_record import Finding

Located = tuple[Finding, Path]
NONE = "none"
"""Instead of the name of a publication: no published numbers, although the suite names some."""


@dataclass(frozen=True)
class ReportOptions:
    """The parts of a report beside the test values.

    Attributes:
        checkpoints: one section each: ``best-val``, ``last``, or ``suite`` for each method's own setting.
        validation: the validation value beside each test value.
        differences: the difference to the reference row, if the suite names one.
        average: averages over datasets.
        statistics: intervals, tests, ranks and wins (docs/statistics.md); None: as the suite says.
        published: name of the published numbers to stand beside ours, ``none`` for none; None: as the suite says.
        remarks: sentences that join the notes of the main table.
    """

    checkpoints: tuple[str, ...] = ("suite",)
    validation: bool = False
    differences: bool = False
    average: bool = False
    statistics: bool | None = None
    published: str | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """The results under one checkpoint rule: ``main`` is their table, ``beside`` the tables that follow it."""

    table: ResultTable
    averages: tuple[AverageColumn, ...]
    main: TextTable
    beside: tuple[TextTable, ...] = ()
    statistics: Statistics | None = None
    published: PublishedComparison | None = None


@dataclass(frozen=True)
class RunReport:
    """All sections, and the results they come from; ``findings`` are the run's analyses, each with its folder."""

    results: RunResults
    sections: tuple[Section, ...]
    findings: tuple[Located, ...] = ()

    @property
    def title(self) -> str:
        """Suite and run."""
        return f"{self.results.suite}, run {self.results.run}" if self.results.run else self.results.suite

    @property
    def tables(self) -> Iterator[TextTable]:
        """The tables of all sections, in reading order."""
        for section in self.sections:
            yield from (section.main, *section.beside)


def make_report(
    results: RunResults, options: ReportOptions | None = None, findings: Sequence[Located] = ()
) -> RunReport:
    """Aggregate and lay out a run, finished or not; its analyses stand below the last table."""
    options = options or ReportOptions()
    sections = [_section(results, checkpoint, options) for checkpoint in options.checkpoints]
    if findings:
        more = tuple(finding_table(finding, folder) for finding, folder in findings)
        sections[-1] = replace(sections[-1], beside=(*sections[-1].beside, *more))
    return RunReport(results, tuple(sections), tuple(findings))


def _section(results: RunResults, checkpoint: str, options: ReportOptions) -> Section:
    table = build_table(results, None if checkpoint == "suite" else checkpoint)
    means = averages(table) if options.average else []
    differences = options.differences and results.reference in results.methods
    asked = results.statistics if options.statistics is None else options.statistics
    computed = statistics(table) if asked else None
    near = computed.near_best if computed else ()
    main = results_table(table, means, near, validation=options.validation, differences=differences)
    lacking = ["No differences: the suite names no reference row (report: {reference: METHOD})."]
    more = lacking if options.differences and not differences else []
    main = replace(main, notes=(*options.remarks, *main.notes, *more))
    beside: list[TextTable] = []
    name, published = options.published or results.published, None
    if name and name != NONE:
        published = compare_published(table, name)
        beside.append(published_table(published, table))
    if computed is not None:
        beside += statistics_tables(table, computed)
    return Section(table, tuple(means), main, tuple(beside), computed, published)


def to_json(report: RunReport) -> dict[str, Any]:
    """Return the report as plain data: ``rows`` are the table rows of all sections, told apart by ``checkpoint``."""
    results, sections = report.results, report.sections
    return {
        "suite": results.suite,
        "run": results.run,
        "protocol": results.protocol,
        "seeds": list(results.seeds),
        "overrides": list(results.overrides),
        "tune": results.tune and vars(results.tune),
        "reference": results.reference,
        "spread": "sample standard deviation",
        "caption": " ".join(sections[0].main.caption),
        "captions": [" ".join(section.main.caption) for section in sections],
        "notes": [section.main.notes for section in sections],
        "unsupported": [asdict(one) for one in results.unsupported],
        "rows": [row.to_json() for section in sections for row in section.table.rows],
        "averages": [column.to_json() for section in sections for column in section.averages],
        "published": [None if section.published is None else asdict(section.published) for section in sections],
        "analyses": [finding_json(finding, folder) for finding, folder in report.findings],
        "statistics": [None if s.statistics is None else statistics_json(s.statistics) for s in sections],
    }
