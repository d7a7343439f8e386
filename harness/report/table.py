"""Aggregate the flat table: one table row per method and column, over the seeds of the selected configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.report.rank import rank
from harness.report.summary import Summary, paired_difference
from harness.results.rows import MethodFacts, ResultRow, RunResults
from harness.results.selection import Choice, ScoreTable, choose, rule_of

SEVERITY = ("failed", "memory", "timeout", "diverged", "undefined", "skipped", "missing")
"""Which status stands for a cell whose seeds ended differently: the first of these."""
NOT_RUN = "not run yet"


@dataclass(frozen=True)
class Column:
    """One column of the table: a dataset's test split; ``version`` says which edition of the data."""

    dataset: str
    split: str
    label: str
    metric: str
    higher_is_better: bool = True
    version: str = ""


@dataclass(frozen=True)
class TableRow:
    """One method in one column, aggregated over seeds.

    Attributes:
        checkpoint: rule that chose the weights (``best@SPLIT`` or ``last``); ``selection`` the rule that chose the
            configuration among ``configurations``.
        test: the values to report; ``validation`` those of the same checkpoints on ``validation_split``.
        statuses, reasons: one per seed; with status ``ok`` a reason is a remark on the value.
        status: ``ok`` only where every seed has a value; ``reason`` says what is wrong.
        provisional: the grid is unfinished; ``oracle_selection``: the configuration was chosen on test scores.
        difference: to the reference method, paired by seed; None without reference.
        rank: ``best``, ``second`` or empty.
        version: which edition of the data it is.
    """

    dataset: str
    method: str
    split: str
    metric: str
    checkpoint: str
    selection: str
    config_id: str | None
    configurations: int
    hyperparameters: Mapping[str, Any]
    test: Summary
    validation: Summary
    validation_split: str
    statuses: tuple[str, ...]
    reasons: tuple[str, ...]
    status: str
    reason: str
    provisional: bool = False
    oracle_selection: bool = False
    oracle: tuple[str, ...] = ()
    environments: str = ""
    uses_validation_labels: bool = False
    difference: Summary | None = None
    rank: str = ""
    version: str = ""

    def to_json(self) -> dict[str, Any]:
        """The row as ``bench report --json`` prints it; values are fractions, aligned with the run's seeds."""
        return {
            "dataset": self.dataset,
            "version": self.version,
            "method": self.method,
            "metric": self.metric,
            **_statistics(self.test),
            "status": self.status,
            "reason": self.reason,
            "split": self.split,
            "checkpoint": self.checkpoint,
            "selection": self.selection,
            "config_id": self.config_id,
            "configurations": self.configurations,
            "hyperparameters": dict(self.hyperparameters),
            "provisional": self.provisional,
            "oracle_selection": self.oracle_selection,
            "oracle": list(self.oracle),
            "environments": self.environments,
            "uses_validation_labels": self.uses_validation_labels,
            "statuses": list(self.statuses),
            "reasons": list(self.reasons),
            "validation": {"split": self.validation_split, **_statistics(self.validation)},
            "difference": None if self.difference is None else _statistics(self.difference),
            "rank": self.rank,
        }


def _statistics(summary: Summary) -> dict[str, Any]:
    return {"n": summary.n, "mean": summary.mean, "spread": summary.spread, "values": list(summary.values)}


@dataclass(frozen=True)
class Table:
    """The table rows of a run under one checkpoint rule (None: as each method's settings say)."""

    results: RunResults
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    checkpoint: str | None = None
    _index: dict[tuple[str, str, str], TableRow] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", {(row.method, row.dataset, row.split): row for row in self.rows})

    def cell(self, method: str, column: Column) -> TableRow | None:
        """The row of a method in a column; None where the suite does not run it there."""
        return self._index.get((method, column.dataset, column.split))

    def column(self, column: Column) -> list[TableRow]:
        """The rows of a column, in the order of the methods."""
        return [row for row in self.rows if (row.dataset, row.split) == (column.dataset, column.split)]


def build_table(results: RunResults, checkpoint: str | None = None) -> Table:
    """Select, aggregate, compare with the reference and rank.

    Args:
        checkpoint: ``best-val`` or ``last`` for all methods, instead of each one's own setting. The configuration
            is then selected on that rule's validation scores too.
    """
    scores = ScoreTable(results)
    columns = _columns(results)
    entries = {(entry.dataset, entry.method): entry for entry in results.entries}
    rows: list[TableRow] = []
    for column in columns:
        found = [
            _row(scores, entry, column, checkpoint)
            for method in results.methods
            if (entry := entries.get((column.dataset, method))) is not None
        ]
        found = _with_differences(found, results.reference)
        rows += _ranked(found, column)
    return Table(results, columns, tuple(rows), checkpoint)


def _columns(results: RunResults) -> tuple[Column, ...]:
    columns = []
    for dataset in results.datasets:
        for split in dataset.test_splits:
            label = dataset.label if len(dataset.test_splits) == 1 else f"{dataset.label} [{split}]"
            columns.append(
                Column(dataset.label, split, label, dataset.metric, dataset.higher_is_better, dataset.version)
            )
    return tuple(columns)


def _row(scores: ScoreTable, entry: MethodFacts, column: Column, checkpoint: str | None) -> TableRow:
    results = scores.results
    choice = choose(scores, entry, column.split, checkpoint)
    rule = rule_of(results, entry, checkpoint)
    validation_split = results.validation_split(entry)
    seeds, shaped = results.seeds, entry.shaped_by_validation
    if choice.config_id is None:
        outcome = _unchosen(scores, entry, rule, validation_split, choice)
        test = validation = Summary((None,) * len(seeds))
    else:
        cells = scores.rows(entry, choice.config_id, column.split, rule)
        outcome = _outcome(seeds, cells)
        test = Summary(tuple(cell.value if cell else None for cell in cells))
        beside = scores.rows(entry, choice.config_id, validation_split, rule)
        validation = Summary(tuple(cell.value if cell else None for cell in beside))
    return TableRow(
        dataset=entry.dataset,
        method=entry.method,
        split=column.split,
        metric=column.metric,
        checkpoint=rule,
        selection=choice.rule,
        config_id=choice.config_id,
        configurations=len(entry.configurations),
        hyperparameters=entry.configurations.get(choice.config_id or "", {}),
        test=test,
        validation=validation,
        validation_split=validation_split,
        **outcome,
        provisional=choice.provisional,
        oracle_selection=choice.oracle,
        oracle=entry.oracle,
        environments=entry.environments,
        uses_validation_labels=bool(shaped) if choice.config_id is None else choice.config_id in shaped,
        version=column.version,
    )


def _outcome(seeds: Sequence[int], cells: Sequence[ResultRow | None]) -> dict[str, Any]:
    """Status and reason of each seed and of the row."""
    statuses = tuple(cell.status if cell else "missing" for cell in cells)
    reasons = tuple(cell.reason if cell else "" for cell in cells)
    status = next((s for s in SEVERITY if s in statuses), "ok")
    reason = _reason(seeds, statuses, reasons) or (NOT_RUN if status == "missing" else "")
    return {"statuses": statuses, "reasons": reasons, "status": status, "reason": reason}


def _reason(seeds: Sequence[int], statuses: Sequence[str], reasons: Sequence[str]) -> str:
    """One line: the common reason where all seeds share it, else what happened to which seeds."""
    groups: dict[tuple[str, str], list[int]] = {}
    for seed, status, reason in zip(seeds, statuses, reasons, strict=True):
        if status != "ok":
            groups.setdefault((status, reason), []).append(seed)
    if len(groups) == 1 and "ok" not in statuses:
        (((_, reason), _),) = groups.items()
        return reason
    parts = []
    for (status, reason), group in groups.items():
        who = f"seed{'s' if len(group) > 1 else ''} {', '.join(map(str, group))} {status}"
        parts.append(f"{who}: {reason}" if reason else who)
    return "; ".join(parts)


def _unchosen(scores: ScoreTable, entry: MethodFacts, rule: str, split: str, choice: Choice) -> dict[str, Any]:
    """The outcome where no configuration is eligible: the worst that happened to any of them."""
    happened = {status for c in scores.candidates(entry, split, rule) for status in c.statuses}
    status = "missing" if happened <= {"missing", "ok"} else next(s for s in SEVERITY if s in happened)
    count = len(scores.results.seeds)
    reason = "" if happened <= {"missing"} else choice.reason
    told = reason or (NOT_RUN if status == "missing" else "")
    return {"statuses": (status,) * count, "reasons": (reason,) * count, "status": status, "reason": told}


def _with_differences(rows: list[TableRow], reference: str | None) -> list[TableRow]:
    base = next((row for row in rows if row.method == reference), None)
    if base is None:
        return rows
    return [
        row if row is base else replace(row, difference=paired_difference(row.test.values, base.test.values))
        for row in rows
    ]


def _ranked(rows: list[TableRow], column: Column) -> list[TableRow]:
    """Rank the complete, settled rows; those that used test scores or oracle fields do not compete."""
    if len(rows) < 2:
        return rows
    competing = [
        row.test.mean if row.test.complete and not (row.provisional or row.oracle_selection or row.oracle) else None
        for row in rows
    ]
    marks = rank(competing, higher_is_better=column.higher_is_better)
    return [replace(row, rank=mark) for row, mark in zip(rows, marks, strict=True)]
