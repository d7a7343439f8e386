"""Aggregation of the flat table: one table row per method and column, over the seeds of the selected configuration."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, TypeVar

from harness.data import in_distribution
from harness.results.rows import LOST, MethodFacts, ResultRow, RunResults
from harness.results.selection import Choice, ScoreTable, choose, deciding_split, rule_of
from harness.results.summary import Summary, mean, paired_difference
from harness.suite.settings import checkpoint_word

Item = TypeVar("Item")
Value = TypeVar("Value", bound=Hashable)
NOT_RUN = "not run yet"


@dataclass(frozen=True)
class Column:
    """One column of the table: a dataset's test split; ``version`` is the edition of the data."""

    dataset: str
    split: str
    label: str
    metric: str
    version: str = ""


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One method in one column, aggregated over seeds; the fields are in the order of the JSON and CSV reports.

    Attributes:
        version: the edition of the data.
        test: the values to report; ``validation`` those of the same checkpoints on ``validation_split``.
        status: ``ok`` only if every seed has a value; ``reason`` says what is wrong.
        checkpoint: rule that chose the weights (``best@SPLIT`` or ``last``); ``selection`` the rule that chose the
            configuration among ``configurations``.
        provisional: the search is unfinished; ``oracle_selection``: the configuration was chosen on test scores.
        statuses, reasons: one per seed; with status ``ok`` a reason is a remark on the value.
        difference: to the reference method, paired by seed; None without reference.
        rank: ``best``, ``second`` or empty.
    """

    dataset: str
    version: str = ""
    method: str
    metric: str
    test: Summary
    status: str
    reason: str
    split: str
    checkpoint: str
    selection: str
    config_id: str | None
    configurations: int
    hyperparameters: Mapping[str, Any]
    provisional: bool = False
    oracle_selection: bool = False
    oracle: tuple[str, ...] = ()
    environments: str = ""
    uses_validation_labels: bool = False
    statuses: tuple[str, ...]
    reasons: tuple[str, ...]
    validation_split: str
    validation: Summary
    difference: Summary | None = None
    rank: str = ""

    @property
    def uses_oracle(self) -> bool:
        """True if test scores or oracle fields were used."""
        return self.oracle_selection or bool(self.oracle)

    @property
    def competes(self) -> bool:
        """True unless the search is unfinished, or test scores or oracle fields were used."""
        return not (self.provisional or self.uses_oracle)

    def to_json(self) -> dict[str, Any]:
        """Return the row as ``bench report --json`` prints it; values are fractions, aligned with the run's seeds."""
        data: dict[str, Any] = {}
        for name, value in vars(self).items():
            data |= _statistics(self.test) if name == "test" else {name: value}
        data["checkpoint"] = checkpoint_word(self.checkpoint)
        split = data.pop("validation_split")
        data["validation"] = {"split": split, **_statistics(self.validation)}
        data["difference"] = None if self.difference is None else _statistics(self.difference)
        return data


def _statistics(summary: Summary) -> dict[str, Any]:
    return {"n": summary.n, "mean": summary.mean, "spread": summary.spread, "values": summary.values}


@dataclass(frozen=True)
class ResultTable:
    """The table rows of a run under one checkpoint rule (None: that of each method's settings)."""

    results: RunResults
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]

    @cached_property
    def _index(self) -> dict[tuple[str, str, str], TableRow]:
        return {(row.method, row.dataset, row.split): row for row in self.rows}

    def cell(self, method: str, column: Column) -> TableRow | None:
        """Return the row of a method in a column; None if the suite does not run it there."""
        return self._index.get((method, column.dataset, column.split))

    def column(self, column: Column) -> list[TableRow]:
        """Return the rows of a column, in the order of the methods."""
        return [row for row in self.rows if (row.dataset, row.split) == (column.dataset, column.split)]


def by_value(pairs: Iterable[tuple[Item, Value]]) -> dict[Value, list[Item]]:
    """Group items by the value beside them, both in the order of their first appearance."""
    groups: dict[Value, list[Item]] = {}
    for item, value in pairs:
        groups.setdefault(value, []).append(item)
    return groups


def names_of(rows: Iterable[TableRow], every: Iterable[TableRow]) -> list[str]:
    """Return the methods of some rows, as ``METHOD on DATASET`` unless all datasets of the method are among them.

    Args:
        every: the rows of the table.
    """
    datasets = by_value((row.dataset, row.method) for row in every)
    named = []
    for method, found in by_value((row.dataset, row.method) for row in rows).items():
        whole = set(found) == set(datasets[method])
        named += [method] if whole else [f"{method} on {dataset}" for dataset in dict.fromkeys(found)]
    return named


def build_table(results: RunResults, checkpoint: str | None = None) -> ResultTable:
    """Select, aggregate, compare with the reference and rank.

    Args:
        checkpoint: ``best-val`` or ``last`` for all methods, instead of each one's own setting. The configuration
            is then selected on that rule's validation scores too.
    """
    scores = ScoreTable(results)
    columns, rows = _columns(results), list[TableRow]()
    for column in columns:
        entries = [entry for method in results.methods if (entry := results.entry(column.dataset, method))]
        cells = [_row(scores, entry, column, checkpoint) for entry in entries]
        base = next((row for row in cells if row.method == results.reference), None)
        means = [row.test.mean if row.test.complete and row.competes else None for row in cells]
        marks = rank(means) if len(cells) > 1 else [""]
        for row, mark in zip(cells, marks, strict=False):
            apart = None if base is None or row is base else paired_difference(row.test.values, base.test.values)
            rows.append(replace(row, difference=apart, rank=mark))
    return ResultTable(results, columns, tuple(rows))


def _columns(results: RunResults) -> tuple[Column, ...]:
    columns = []
    for dataset in results.datasets:
        for split in dataset.test_splits:
            label = dataset.label if len(dataset.test_splits) == 1 else f"{dataset.label} [{split}]"
            columns.append(Column(dataset.label, split, label, dataset.metric, dataset.version))
    return tuple(columns)


def _row(scores: ScoreTable, entry: MethodFacts, column: Column, checkpoint: str | None) -> TableRow:
    results = scores.results
    choice = choose(scores, entry, column.split, checkpoint)
    rule, split = rule_of(results, entry, checkpoint), results.validation_split(entry)
    seeds, shaped = results.seeds, entry.shaped_by_validation
    if choice.config_id is None:
        outcome = _unchosen(scores, entry, rule, deciding_split(results, entry, column.split), choice)
        test = validation = Summary((None,) * len(seeds))
        uses_labels = bool(shaped)
    else:
        outcome = _outcome(seeds, scores.rows(entry, choice.config_id, column.split, rule))
        test, validation = (
            Summary(scores.candidate(entry, choice.config_id, name, rule).values) for name in (column.split, split)
        )
        uses_labels = choice.config_id in shaped
    return TableRow(
        dataset=entry.dataset,
        method=entry.method,
        split=column.split,
        metric=column.metric,
        checkpoint=rule,
        selection=entry.select.config,
        config_id=choice.config_id,
        configurations=len(entry.configurations),
        hyperparameters=entry.configurations.get(choice.config_id or "", {}),
        test=test,
        validation=validation,
        validation_split=split,
        **outcome,
        provisional=choice.provisional,
        oracle_selection=entry.select.config == "oracle" and entry.tuned,
        oracle=entry.oracle,
        environments=entry.environments,
        uses_validation_labels=uses_labels,
        version=column.version,
    )


def _outcome(seeds: Sequence[int], cells: Sequence[ResultRow | None]) -> dict[str, Any]:
    """Return the status and reason of each seed and of the row."""
    statuses = tuple(cell.status if cell else "missing" for cell in cells)
    reasons = tuple(cell.reason if cell else "" for cell in cells)
    status = next((s for s in LOST if s in statuses), "ok")
    outcomes = zip(seeds, zip(statuses, reasons, strict=True), strict=True)
    groups = by_value((seed, outcome) for seed, outcome in outcomes if outcome[0] != "ok")
    if len(groups) == 1 and "ok" not in statuses:
        reason = reasons[0]
    else:
        parts = []
        for (what, why), group in groups.items():
            who = f"seed{'s' if len(group) > 1 else ''} {', '.join(map(str, group))} {what}"
            parts.append(f"{who}: {why}" if why else who)
        reason = "; ".join(parts)
    reason = reason or (NOT_RUN if status == "missing" else "")
    return {"statuses": statuses, "reasons": reasons, "status": status, "reason": reason}


def _unchosen(scores: ScoreTable, entry: MethodFacts, rule: str, split: str, choice: Choice) -> dict[str, Any]:
    """Return the outcome without an eligible configuration: the worst status of any of them."""
    statuses = {status for c in scores.candidates(entry, split, rule) for status in c.statuses}
    status = next((s for s in LOST if s in statuses), "missing")
    reason, count = "" if statuses <= {"missing"} else choice.reason, len(scores.results.seeds)
    told = reason or (NOT_RUN if status == "missing" else "")
    return {"statuses": (status,) * count, "reasons": (reason,) * count, "status": status, "reason": told}


def rank(means: Sequence[float | None]) -> list[str]:
    """Return ``best``, ``second`` or an empty text for each mean (a fraction).

    Means are compared as they are printed, in percent with two decimals, so that what looks equal is marked equal:
    equal ones share a place, so that there is no second beside two best. None and non-finite values are never marked.
    """
    shown = [round(100 * mean, 2) if mean is not None and isfinite(mean) else None for mean in means]
    ordered = sorted((value for value in shown if value is not None), reverse=True)
    marks = dict.fromkeys(ordered[1:2], "second") | dict.fromkeys(ordered[:1], "best")
    return ["" if value is None else marks.get(value, "") for value in shown]


@dataclass(frozen=True)
class AverageCell:
    """One method's average: ``summary`` over seeds of the mean over the ``covered`` datasets."""

    summary: Summary
    covered: int
    rank: str = ""


@dataclass(frozen=True)
class AverageColumn:
    """An average over columns of one metric, all in-distribution or all shifted.

    ``excluded`` are the columns in which no method has a value; ``cells`` has one for each method.
    """

    label: str
    columns: tuple[Column, ...]
    excluded: tuple[Column, ...]
    cells: Mapping[str, AverageCell]

    def to_json(self) -> dict[str, Any]:
        """Return the column as ``bench report --json`` prints it."""
        covers, excluded = ([column.label for column in columns] for columns in (self.columns, self.excluded))
        rows = []
        for method, cell in self.cells.items():
            counts = {"datasets": cell.covered, "of": len(covers), "rank": cell.rank}
            rows.append({"method": method, **_statistics(cell.summary), **counts})
        return {"label": self.label, "covers": covers, "excluded": excluded, "rows": rows}


def column_families(table: ResultTable) -> list[list[Column]]:
    """Group the columns that may be put together: of one metric, all in-distribution or all shifted."""
    families = by_value((c, (c.metric, in_distribution(c.split))) for c in table.columns)
    return list(families.values())


def averages(table: ResultTable) -> list[AverageColumn]:
    """Average over the datasets of each family of at least two columns."""
    families = column_families(table)
    found = []
    for columns in families:
        kind = "ID" if in_distribution(columns[0].split) else "OOD"
        label = f"Average ({columns[0].metric}, {kind})" if len(families) > 1 else "Average"
        found += [_average(table, columns, label)] if len(columns) > 1 else []
    return found


def _average(table: ResultTable, columns: Sequence[Column], label: str) -> AverageColumn:
    """Average the datasets that each method completed, seed by seed, so that the spread is one over seeds."""
    used = tuple(column for column in columns if any(row.test.n for row in table.column(column)))
    methods, cells, means = table.results.methods, [], []
    for method in methods:
        rows = [row for column in used if (row := table.cell(method, column)) is not None]
        complete = [row.test.present for row in rows if row.test.complete]
        none = (None,) * len(table.results.seeds)
        summary = Summary(tuple(map(mean, zip(*complete, strict=True))) if complete else none)
        competes = len(complete) == len(used) and summary.complete and all(row.competes for row in rows)
        cells.append(AverageCell(summary, len(complete)))
        means.append(summary.mean if competes else None)
    marks = rank(means) if len(cells) > 1 else [""] * len(cells)
    ranked = (replace(cell, rank=mark) for cell, mark in zip(cells, marks, strict=True))
    excluded = tuple(column for column in columns if column not in used)
    return AverageColumn(label, used, excluded, dict(zip(methods, ranked, strict=True)))
