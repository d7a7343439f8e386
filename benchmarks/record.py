"""The record: runs of this repository's suites as data of the package, and the pages that show them.

    python benchmarks/record.py add RUN [--store FOLDER]
    python benchmarks/record.py pages

``add`` writes ``harness/results/published/record/SUITE.json`` from a run, named as for `bench report`: protocol,
fingerprints, selection, every seed's values, commit and machine. Rows with cells that have not run are left out.
``pages`` writes the tables in ``docs/results`` anew from these files. A table stands between comments that name a
suite of the record and parts of a report, with patterns of its columns and rows::

    <!-- record: recorded-molecules --validation --checkpoint both --datasets B* -->
    <!-- /record -->
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.report import NONE, ReportOptions, make_report, render
from harness.results.compare import narrowed
from harness.results.record import FOLDER, Recorded, load_record
from harness.run.collect import collect
from harness.run.find import find_run
from harness.safe_io import write_text
from harness.store import Store

PAGES = Path(__file__).resolve().parents[1] / "docs" / "results"
BLOCK = re.compile(r"(<!-- record: (?P<words>[^\n]+?) -->\n).*?(<!-- /record -->)", re.DOTALL)


def add(run: str, store: Path | None) -> Path:
    """Write a run's file of the record."""
    opened = Store(store)
    record = find_run(run, opened)
    path = FOLDER / f"{record.results.suite}.json"
    FOLDER.mkdir(exist_ok=True)
    write_text(path, Recorded.of_run(record, collect(record, opened)).text())
    return path


def table(words: str) -> str:
    """Return what stands in a block: the suite's tables in Markdown, and where they are from."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("suite")
    parser.add_argument("--datasets", nargs="+", default=[])
    parser.add_argument("--methods", nargs="+", default=[])
    parser.add_argument("--checkpoint", default="suite")
    parser.add_argument("--published", default=NONE)
    for part in ("validation", "differences", "statistics", "average"):
        parser.add_argument(f"--{part}", action="store_true")
    given = parser.parse_args(shlex.split(words))
    run = next(one for one in load_record() if one.results.suite == given.suite)
    rules = ("best-val", "last") if given.checkpoint == "both" else (given.checkpoint,)
    parts = given.validation, given.differences, given.average, given.statistics, given.published
    shown = replace(narrowed(run.results, given.datasets, given.methods), run="")
    text = render(make_report(shown, ReportOptions(rules, *parts)), "markdown").partition("\n\n")[
        2
    ]  # without the title
    prints = ", ".join(f"`{data.fingerprint[:16]}` ({data.label})" for data in shown.datasets)
    cells = {row.cell: row for row in run.results.rows}.values()
    hours, failed = sum(row.seconds or 0 for row in cells) / 3600, sum(row.status != "ok" for row in cells)
    return (
        f"{text}\nRecorded: {run.source}; its suite has {len(cells)} cells, {failed} without a value, {hours:.1f} "
        f"hours of training. Fingerprints: {prints}.\n"
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
        print(add(given.run, given.store))
        return
    for page in sorted(PAGES.glob("*.md")):
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
