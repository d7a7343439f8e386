"""A report: one section per checkpoint rule asked for, each a table with its grid, caption and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.report.average import AverageColumn, averages
from harness.report.block import Block
from harness.report.caption import caption
from harness.report.findings import finding_block, finding_json
from harness.report.layout import Grid, make_grid
from harness.report.published import Published, beside_published
from harness.report.published_text import block as published_block
from harness.report.published_text import published_json
from harness.report.statistics import Statistics, statistics
from harness.report.statistics_json import statistics_json
from harness.report.statistics_text import blocks as statistics_blocks
from harness.report.table import Table, build_table
from harness.results.findings import Finding
from harness.results.rows import RunResults

Located = tuple[Finding, Path]
NONE = "none"
"""Instead of a name: no published numbers, although the suite has some."""


@dataclass(frozen=True)
class Options:
    """What to show beside the test values.

    Attributes:
        checkpoints: one section each: ``best-val``, ``last``, or ``suite`` for each method's own setting.
        validation: the validation value beside each test value.
        differences: the difference to the reference row, where the suite names one.
        average: averages over datasets.
        statistics: intervals, tests, ranks and records (docs/statistics.md); None: as the suite says.
        published: name of the published numbers to stand beside ours, ``none`` for none; None: as the suite says.
    """

    checkpoints: tuple[str, ...] = ("suite",)
    validation: bool = False
    differences: bool = False
    average: bool = False
    statistics: bool | None = None
    published: str | None = None


@dataclass(frozen=True)
class Section:
    """One table of a report.

    Attributes:
        caption: one sentence a fact.
        selected: which configuration each tuned method shows, one line each.
        blocks: tables beside the main one; ``statistics`` and ``published`` are what they show.
    """

    table: Table
    averages: tuple[AverageColumn, ...]
    grid: Grid
    caption: tuple[str, ...]
    selected: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    statistics: Statistics | None = None
    published: Published | None = None


@dataclass(frozen=True)
class Report:
    """All sections, and the results they come from; ``findings`` are the run's analyses, each with its folder."""

    results: RunResults
    sections: tuple[Section, ...]
    findings: tuple[Located, ...] = ()

    @property
    def title(self) -> str:
        """Suite and run."""
        return f"{self.results.suite}, run {self.results.run}" if self.results.run else self.results.suite


def make_report(results: RunResults, options: Options | None = None, findings: Sequence[Located] = ()) -> Report:
    """Aggregate and lay out a run, finished or not; its analyses stand below the last table."""
    options = options or Options()
    sections = [_section(results, checkpoint, options) for checkpoint in options.checkpoints]
    if findings:
        more = tuple(finding_block(finding, folder) for finding, folder in findings)
        sections[-1] = replace(sections[-1], blocks=(*sections[-1].blocks, *more))
    return Report(results, tuple(sections), tuple(findings))


def _section(results: RunResults, checkpoint: str, options: Options) -> Section:
    table = build_table(results, None if checkpoint == "suite" else checkpoint)
    means = tuple(averages(table)) if options.average else ()
    differences = options.differences and results.reference in results.methods
    grid = make_grid(table, means, validation=options.validation, differences=differences)
    sentences = caption(table, means, differences=differences)
    if options.differences and not differences:
        sentences.append("No differences: the suite names no reference row (report: {reference: METHOD}).")
    published, found = _published(table, options), _statistics(table, options)
    blocks = [] if published is None else [published_block(published)]
    blocks += [] if found is None else statistics_blocks(table, found)
    return Section(table, means, grid, tuple(sentences), tuple(_selected(table)), tuple(blocks), found, published)


def _published(table: Table, options: Options) -> Published | None:
    name = options.published or table.results.published
    return beside_published(table, name) if name and name != NONE else None


def _statistics(table: Table, options: Options) -> Statistics | None:
    wanted = table.results.statistics if options.statistics is None else options.statistics
    return statistics(table) if wanted else None


def _selected(table: Table) -> Iterable[str]:
    """Once for each method and dataset, however many test splits the dataset has."""
    return dict.fromkeys(
        f"{row.method} on {row.dataset}: {row.config_id}{' (provisional)' if row.provisional else ''}"
        for row in table.rows
        if row.configurations > 1 and row.config_id is not None
    )


def to_json(report: Report) -> dict[str, Any]:
    """The report as plain data: ``rows`` are the table rows of all sections, told apart by ``checkpoint``."""
    results = report.results
    return {
        "suite": results.suite,
        "run": results.run,
        "protocol": results.protocol,
        "seeds": list(results.seeds),
        "overrides": list(results.overrides),
        "reference": results.reference,
        "spread": "sample standard deviation",
        "caption": " ".join(report.sections[0].caption),
        "captions": [" ".join(section.caption) for section in report.sections],
        "rows": [row.to_json() for section in report.sections for row in section.table.rows],
        "averages": [_average_json(column) for section in report.sections for column in section.averages],
        "published": [None if s.published is None else published_json(s.published) for s in report.sections],
        "analyses": [finding_json(finding, folder) for finding, folder in report.findings],
        "statistics": [None if s.statistics is None else statistics_json(s.statistics) for s in report.sections],
    }


def _average_json(column: AverageColumn) -> Mapping[str, Any]:
    return {
        "label": column.label,
        "covers": [item.label for item in column.columns],
        "excluded": [item.label for item in column.excluded],
        "rows": [
            {
                "method": cell.method,
                "n": cell.summary.n,
                "mean": cell.summary.mean,
                "spread": cell.summary.spread,
                "values": list(cell.summary.values),
                "datasets": cell.covered,
                "of": cell.total,
                "rank": cell.rank,
            }
            for cell in column.cells
        ],
    }
