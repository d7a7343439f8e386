"""A comparison as a table with sentences, and as plain data."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from harness.report import latex, markdown, plain
from harness.report.block import Block
from harness.report.layout import Grid, Text
from harness.report.statistics_text import SIGNIFICANT, interval_text, percent_of
from harness.report.summary import Summary
from harness.report.text import one_line, percent, value_text
from harness.results.compare.build import Comparison, Pair, unchanged
from harness.results.intervals import LEVEL
from harness.results.rows import dumps


def block(found: Comparison) -> Block:
    """The comparison as one table."""
    first, second = found.first.name, found.second.name
    header = ("Dataset", "Method", f"First: {first}", f"Second: {second}", "Second − first")
    rows = tuple(_row(pair) for pair in found.pairs)
    return Block(f"{second} against {first}", Grid(header, rows, (), words=2), tuple(_sentences(found)))


def _row(pair: Pair) -> tuple[Text, ...]:
    significant = SIGNIFICANT if pair.difference.excludes_zero else ""
    return (
        Text(one_line(pair.label)),
        Text(one_line(pair.first.method)),
        Text(_value(pair, 0)),
        Text(_value(pair, 1)),
        Text(_difference(pair), flags=significant),
    )


def _value(pair: Pair, side: int) -> str:
    """The mean over the seeds that both runs have, or why there is none."""
    row = (pair.first, pair.second)[side]
    summary = Summary(tuple(values[side] for values in pair.values))
    if not summary.n:
        return "–" if row.test.n else value_text(row)
    count = f" (n={summary.n}/{len(pair.seeds)})" if not summary.complete else " (n=1)" if summary.n == 1 else ""
    return percent(summary) + count


def _difference(pair: Pair) -> str:
    if pair.identical:
        return f"identical (n={pair.difference.n})"
    text = interval_text(pair.difference, signed=True)
    short = 1 < pair.difference.n < len(pair.seeds) and pair.difference.low is not None
    return f"{text} (n={pair.difference.n}/{len(pair.seeds)})" if short else text


def _sentences(found: Comparison) -> list[str]:
    seeds = ", ".join(map(str, found.pairs[0].seeds))
    lines = [
        f"Second minus first in percentage points, paired by seed ({seeds}), with its {percent_of(LEVEL)} t-interval; "
        f"{SIGNIFICANT}: it excludes zero, not corrected for the number of rows.",
        "Both means are over these seeds. Identical: all paired values are equal to the bit.",
    ]
    if unchanged(found.pairs):
        lines.append("Nothing has changed: every cell is identical.")
    if found.forced:
        lines.append(f"NOT COMPARABLE, compared by force; the runs differ in: {'; '.join(found.forced)}.")
    if found.notes:
        lines.append(f"They also differ in: {'; '.join(found.notes)}.")
    return lines + [f"{line[0].upper()}{line[1:]}." for line in found.missing]


def to_json(found: Comparison) -> dict[str, Any]:
    """All that was found; values are fractions, differences percentage points."""
    return {
        "first": _side(found.first.record.id, found.first.results.suite, str(found.first.store.root)),
        "second": _side(found.second.record.id, found.second.results.suite, str(found.second.store.root)),
        "identical": unchanged(found.pairs),
        "forced": list(found.forced),
        "notes": list(found.notes),
        "missing": list(found.missing),
        "rows": [_json(pair) for pair in found.pairs],
    }


def _side(run: str, suite: str, store: str) -> dict[str, str]:
    return {"run": run, "suite": suite, "store": store}


def _json(pair: Pair) -> dict[str, Any]:
    return {
        "dataset": pair.first.dataset,
        "split": pair.first.split,
        "method": pair.first.method,
        "metric": pair.first.metric,
        "configurations": [pair.first.config_id, pair.second.config_id],
        "seeds": list(pair.seeds),
        "first": [first for first, _ in pair.values],
        "second": [second for _, second in pair.values],
        "difference": asdict(pair.difference),
        "identical": pair.identical,
    }


def _csv(found: Comparison) -> str:
    stream = io.StringIO()
    names = ["dataset", "split", "method", "metric", "seed", "first", "second"]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*names, "first_configuration", "second_configuration"])
    for pair in found.pairs:
        head = [pair.first.dataset, pair.first.split, pair.first.method, pair.first.metric]
        for seed, values in zip(pair.seeds, pair.values, strict=True):
            writer.writerow([*head, seed, *values, pair.first.config_id, pair.second.config_id])
    return stream.getvalue()


RENDERERS: Mapping[str, Callable[[Comparison], str]] = MappingProxyType(
    {
        "plain": lambda found: plain.block_text(block(found)) + "\n",
        "markdown": lambda found: markdown.block_text(block(found)) + "\n",
        "latex": lambda found: latex.block_text(block(found), "tab:compare") + "\n",
        "csv": _csv,
        "json": lambda found: dumps(to_json(found)),
    }
)
