"""The record: runs of this repository's suites as data of the package, and the pages that show them.

    python benchmarks/record.py add RUN [--store FOLDER]
    python benchmarks/record.py pages

``add`` writes ``harness/results/published/record/ID.json`` from a run, named as for `bench report`: protocol,
fingerprints, selection, every seed's values, commit, machine and the tables of analyses. Their pictures go to
``docs/results/figures``. Rows with cells that have not run are left out.
``pages`` writes the tables in ``docs/results`` anew from these files. A table stands between comments that name a
suite of the record and parts of a report, with patterns of its columns and rows::

    <!-- record: recorded-table2 --validation --checkpoint both --datasets B* -->
    <!-- /record -->

Or the name of one of its analyses, for its picture and table (``--alt`` says what the picture shows; without it
there is none)::

    <!-- record: recorded-figures --analysis Votes --alt 'Box plots of votes' -->
    <!-- /record -->
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from PIL import Image

from harness.errors import BenchError
from harness.report import NONE, ReportOptions, make_report, render
from harness.report.layout import finding_table
from harness.report.markdown import markdown_table
from harness.results.compare import narrowed
from harness.results.record import FOLDER, Recorded, load_record
from harness.results.rows import RunResults
from harness.results.run_record import Finding, load_findings
from harness.run.collect import collect
from harness.run.find import find_run
from harness.safe_io import file_name, write_text
from harness.store import Store

PAGES = Path(__file__).resolve().parents[1] / "docs" / "results"
BLOCK = re.compile(r"(<!-- record: (?P<words>[^\n]+?) -->\n).*?(<!-- /record -->)", re.DOTALL)


def add(run: str, store: Path | None) -> Path:
    """Write a run's file of the record."""
    opened = Store(store)
    record = find_run(run, opened)
    path = FOLDER / f"{record.id}.json"
    FOLDER.mkdir(exist_ok=True)
    found = load_findings(opened.runs / record.id)
    for finding, folder in found:
        for name in finding.figures:
            if name.endswith(".png"):
                small = Image.open(folder / name).quantize(128)
                small.save(PAGES / picture(record.results.suite, finding), optimize=True)
    results = collect(record, opened)
    write_text(path, Recorded.of_run(record, results, [finding for finding, _ in found]).text())
    return path


def picture(suite: str, finding: Finding) -> str:
    """Return the place of an analysis's picture, from the pages."""
    return f"figures/{suite.removeprefix('recorded-')}-{file_name(finding.label.lower())}.png"


def table(words: str) -> str:
    """Return what stands in a block: the tables of a suite's recorded runs in Markdown, and where they are from."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("suite")
    parser.add_argument("--datasets", nargs="+", default=[])
    parser.add_argument("--methods", nargs="+", default=[])
    parser.add_argument("--checkpoint", default="suite")
    parser.add_argument("--published", default=NONE)
    for part in ("validation", "differences", "statistics"):
        parser.add_argument(f"--{part}", action="store_true")
    parser.add_argument("--analysis")
    parser.add_argument("--alt", default="")
    given = parser.parse_args(shlex.split(words))
    runs = [one for one in load_record() if one.results.suite == given.suite]
    if given.analysis:
        return analysis(runs, given)
    rules = ("best-val", "last") if given.checkpoint == "both" else (given.checkpoint,)
    options = ReportOptions(
        rules, given.validation, given.differences, statistics=given.statistics, published=given.published
    )
    shown = narrowed(together([run.results for run in runs]), given.datasets, given.methods)
    shown = shown.of({data.label for data in shown.datasets}, {entry.method for entry in shown.entries})
    _title, _, text = render(make_report(shown, options), "markdown").partition("\n\n")
    prints = ", ".join(f"`{data.fingerprint[:16]}` ({data.label})" for data in shown.datasets)
    cells = {row.coordinates: row for row in shown.rows if shown.entry(row.dataset, row.method)}.values()
    given_by = [run.source for run in runs if any(entry in shown.entries for entry in run.results.entries)]
    sources = "; ".join(dict.fromkeys(given_by))
    hours, failed = sum(row.seconds or 0 for row in cells) / 3600, sum(row.status != "ok" for row in cells)
    return (
        f"{text}\nRecorded: {sources}; {len(cells)} cells, {failed} without a value, "
        f"{hours:.1f} hours of training. Fingerprints: {prints}.\n"
    )


def analysis(runs: Sequence[Recorded], given: argparse.Namespace) -> str:
    """Return an analysis of these runs: its picture, and its table in part, of a row of the suite the latest run's."""
    found = [(run, one) for run in runs for one in run.findings if one.label == given.analysis and one.columns]
    finding = found[-1][1]
    places = [finding.columns.index(column) for column in ("dataset", "method")]
    by_row = {tuple(row[place] for place in places): one for _, one in found for row in one.rows}
    rows = (row for _, one in found for row in one.rows if by_row[tuple(row[place] for place in places)] is one)
    finding = replace(finding, rows=tuple(rows))
    for column, patterns in (("dataset", given.datasets), ("method", given.methods)):
        if patterns:
            place = finding.columns.index(column)
            kept = (row for row in finding.rows if any(fnmatchcase(str(row[place]), one) for one in patterns))
            finding = replace(finding, rows=tuple(kept))
    shown = markdown_table(replace(finding_table(finding, PAGES), title="", figure=""))
    image = f"![{given.alt}]({picture(given.suite, finding)})\n\n" if given.alt else ""
    sources = "; ".join(dict.fromkeys(run.source for run, _ in found))
    return f"{image}{shown}\n\nRecorded: {sources}.\n"


def together(runs: Sequence[RunResults]) -> RunResults:
    """Join the rows of runs of one suite; of a row that several have, the latest."""
    latest = {(entry.dataset, entry.method): run for run in runs for entry in run.entries}
    datasets = {data.label: data for run in runs for data in run.datasets}
    return replace(
        runs[0],
        run="",
        datasets=tuple(datasets[label] for label in sorted(datasets)),
        methods=tuple(dict.fromkeys(method for run in runs for method in run.methods)),
        entries=tuple(entry for run in runs for entry in run.entries if latest[entry.dataset, entry.method] is run),
        rows=tuple(row for run in runs for row in run.rows if latest[row.dataset, row.method] is run),
        overrides=(),
    )


def with_tables(text: str) -> str:
    """Return a page's text with every block written anew; footnotes of blocks are told apart."""
    numbers = count(1)

    def written(block: re.Match[str]) -> str:
        return f"{block[1]}\n{table(block['words']).replace('[^', f'[^{next(numbers)}.')}\n{block[3]}"

    return BLOCK.sub(written, text)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add")
    adding.add_argument("run")
    adding.add_argument("--store", type=Path)
    commands.add_parser("pages")
    given = parser.parse_args()
    if given.command == "add":
        try:
            print(add(given.run, given.store))
        except BenchError as error:
            sys.exit(f"error: {error}")
        return
    for page in sorted(PAGES.glob("*.md")):
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
