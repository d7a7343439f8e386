"""A comparison of two runs as a table with sentences, and as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.errors import listed
from harness.report.latex import latex_table
from harness.report.markdown import markdown_table
from harness.report.plain import plain_table
from harness.report.table import (
    ORACLE_FLAG,
    SIGNIFICANT,
    Text,
    TextTable,
    interval_text,
    one_line,
    summary_text,
    value_text,
)
from harness.results.compare import CellPair, Comparison, Side
from harness.results.statistics import LEVEL
from harness.results.summary import Summary
from harness.safe_io import csv_text, json_text


def render_comparison(compared: Comparison, style: str) -> str:
    """Render a comparison in one of the formats of :data:`harness.report.RENDERERS`."""
    if style == "csv":
        return _csv(compared)
    if style == "json":
        return json_text(comparison_json(compared))
    table = comparison_table(compared)
    if style == "latex":
        return latex_table(table, "tab:compare") + "\n"
    return (markdown_table(table) if style == "markdown" else plain_table(table)) + "\n"


def comparison_table(compared: Comparison) -> TextTable:
    """Lay a comparison out."""
    first, second = compared.first.record.id, compared.second.record.id
    header = ("Dataset", "Method", f"First: {first}", f"Second: {second}", "Second − first")
    rows = tuple(_row(pair) for pair in compared.pairs)
    return TextTable(f"{second} against {first}", header, rows, words=2, caption=tuple(_sentences(compared)))


def _row(pair: CellPair) -> tuple[Text, ...]:
    words = Text(one_line(pair.label)), Text(one_line(pair.first.method))
    difference = interval_text(pair.difference, seeds=len(pair.seeds), signed=True)
    told = f"identical (n={pair.difference.n})" if pair.identical else difference
    flags = SIGNIFICANT if pair.difference.excludes_zero else ""
    return (*words, _value(pair, 0), _value(pair, 1), Text(told, flags=flags))


def _value(pair: CellPair, side: int) -> Text:
    """Return the mean over the seeds that both runs have, or why there is none."""
    row, summary = (pair.first, pair.second)[side], Summary(tuple(values[side] for values in pair.values))
    told = summary_text(summary) if summary.n or row.test.n else value_text(row)
    return Text(told, flags=ORACLE_FLAG if row.uses_oracle else "")


def _sentences(compared: Comparison) -> list[str]:
    seeds = ", ".join(map(str, compared.pairs[0].seeds))
    lines = [
        f"Second minus first in percentage points, paired by seed ({seeds}), with its {LEVEL:.0%} t-interval; "
        f"{SIGNIFICANT}: it excludes zero, not corrected for the number of rows.",
        "Both means are over these seeds. Identical: all paired values are equal to the bit.",
    ]
    if compared.identical:
        lines.append("Nothing has changed: every cell is identical.")
    sides = (compared.first.record.id, compared.second.record.id)
    shown = [(row, run) for pair in compared.pairs for row, run in zip((pair.first, pair.second), sides, strict=True)]
    if any(row.uses_oracle for row, _ in shown):
        told = "the configuration was chosen on test scores, or the method opens oracle fields"
        lines.append(f"{ORACLE_FLAG}: oracle information: {told}.")
    provisional = dict.fromkeys(f"{row.method} on {row.dataset} in {run}" for row, run in shown if row.provisional)
    if provisional:
        lines.append(f"Provisional, as a search is unfinished: {listed(provisional)}.")
    if compared.forced:
        lines.append(f"NOT COMPARABLE, compared by force; the runs differ in: {'; '.join(compared.forced)}.")
    if compared.notes:
        lines.append(f"They also differ in: {'; '.join(compared.notes)}.")
    return lines + [f"{line[0].upper()}{line[1:]}." for line in compared.missing]


def comparison_json(compared: Comparison) -> dict[str, Any]:
    """Return a comparison as plain data; values are fractions, differences percentage points."""
    return {
        "first": _side(compared.first),
        "second": _side(compared.second),
        "identical": compared.identical,
        "forced": list(compared.forced),
        "notes": list(compared.notes),
        "missing": list(compared.missing),
        "rows": [
            {
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
                "provisional": [pair.first.provisional, pair.second.provisional],
                "oracle": [pair.first.uses_oracle, pair.second.uses_oracle],
            }
            for pair in compared.pairs
        ],
    }


def _side(side: Side) -> dict[str, str]:
    return {"run": side.record.id, "suite": side.results.suite, "store": str(side.store.root)}


def _csv(compared: Comparison) -> str:
    names = ["dataset", "split", "method", "metric", "seed", "first", "second"]
    rows: list[list[Any]] = [[*names, "first_configuration", "second_configuration"]]
    for pair in compared.pairs:
        head = [pair.first.dataset, pair.first.split, pair.first.method, pair.first.metric]
        for seed, values in zip(pair.seeds, pair.values, strict=True):
            rows.append([*head, seed, *values, pair.first.config_id, pair.second.config_id])
    return csv_text(rows)
