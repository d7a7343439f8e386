"""The caption: everything a reader must know to judge the numbers, one sentence a fact."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from harness.report.average import AverageColumn
from harness.report.table import Table, TableRow
from harness.results.rows import LAST, DatasetFacts
from harness.store import span

METRICS = {"accuracy": "accuracy", "rocauc": "ROC-AUC", "mcc": "Matthews correlation"}

_FEW = 3
_BRACKETS = re.compile(r"\([^()]*\)")
_CUT = {
    "interrupted": "The run was interrupted before its end.",
    "running": "The run has not ended: it goes on, or was killed.",
}


def caption(table: Table, averages: Sequence[AverageColumn] = (), *, differences: bool = False) -> list[str]:
    """The sentences of a table's caption, in reading order.

    Args:
        averages: the average columns shown, if any.
        differences: whether differences to the reference row are shown.
    """
    sentences = [
        _metric(table),
        _checkpoint(table),
        _configuration(table),
        _validation(table),
        _validation_users(table),
        _environments(table),
        _oracle(table),
        _variants(table),
        _skipped(table),
        _protocol(table),
        _devices(table),
        _difference(table) if differences else "",
        *(_average(column) for column in averages),
        _incomplete(table),
        _stored(table),
    ]
    return [sentence for sentence in sentences if sentence]


def metric_name(dataset: DatasetFacts) -> str:
    """The metric in words."""
    name = METRICS.get(dataset.metric, dataset.metric)
    return f"{name} (mean over labelled tasks)" if dataset.task == "multitask" else name


def group(pairs: Iterable[tuple[str, str]], total: int | None = None) -> str:
    """``value (names); value (names)``; the value alone where there is one for all."""
    by_value: dict[str, list[str]] = {}
    for name, value in pairs:
        by_value.setdefault(value, []).append(name)
    if len(by_value) == 1 and total in (None, len(next(iter(by_value.values())))):
        return next(iter(by_value))
    return "; ".join(f"{value} ({listing(names)})" for value, names in by_value.items())


def listing(names: Iterable[str]) -> str:
    """Labels in a row: those with a comma outside brackets are quoted, so that a reader can tell them apart."""
    return ", ".join(f"'{name}'" if "," in _BRACKETS.sub("", name) else name for name in names)


def methods_where(table: Table, pairs: Iterable[tuple[TableRow, str]]) -> list[tuple[str, str]]:
    """(method, value) pairs, or (method on dataset, value) where a method's value differs between datasets."""
    values: dict[str, dict[str, str]] = {}
    for row, value in pairs:
        values.setdefault(row.method, {})[row.dataset] = value
    found = []
    for method, by_dataset in values.items():
        everywhere = {row.dataset for row in table.rows if row.method == method}
        if len(set(by_dataset.values())) == 1 and set(by_dataset) == everywhere:
            found.append((method, next(iter(by_dataset.values()))))
        else:
            found += [(f"{method} on {dataset}", value) for dataset, value in by_dataset.items()]
    return found


def _metric(table: Table) -> str:
    results = table.results
    names = group((d.label, metric_name(d)) for d in results.datasets)
    seeds = ", ".join(map(str, results.seeds))
    draw = f"on one draw of the data{_draw(results.datasets)}"
    lower = [d.label for d in results.datasets if not d.higher_is_better]
    direction = f" Lower is better for {listing(lower)}." if lower else ""
    splits = {column.split for column in table.columns}
    split = "" if splits <= {"test"} else f" on {' and '.join(sorted(splits))}"
    if len(results.seeds) == 1:
        return f"Test {names} in percent{split}, n=1: one training seed ({seeds}) {draw}, hence no spread.{direction}"
    return (
        f"Test {names} in percent{split}: mean ± sample standard deviation over {len(results.seeds)} training seeds "
        f"({seeds}) {draw}.{direction}"
    )


def _draw(datasets: Sequence[DatasetFacts]) -> str:
    drawn = []
    for dataset in datasets:
        parts = [] if dataset.seed is None else [f"dataset seed {dataset.seed}"]
        parts += [] if dataset.split_seed is None else [f"split seed {dataset.split_seed}"]
        if parts:
            drawn.append((dataset.label, ", ".join(parts)))
    return f" ({group(drawn, len(datasets))})" if drawn else ""


def _checkpoint(table: Table) -> str:
    pairs = methods_where(table, ((row, _rule(row)) for row in table.rows))
    return f"Checkpoint: {group(pairs)}." if pairs else ""


def _rule(row: TableRow) -> str:
    return "last epoch" if row.checkpoint == LAST else f"first epoch with the best score on {row.validation_split}"


def _configuration(table: Table) -> str:
    tuned = [row for row in table.rows if row.configurations > 1]
    if not tuned:
        return "Nothing was tuned."
    pairs = methods_where(table, ((row, _selector(row)) for row in tuned))
    return f"Configuration: {'; '.join(f'{value} ({name})' for value, name in _merged(pairs))}."


def _merged(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    by_value: dict[str, list[str]] = {}
    for name, value in pairs:
        by_value.setdefault(value, []).append(name)
    return [(value, listing(names)) for value, names in by_value.items()]


def _selector(row: TableRow) -> str:
    count = f"of {row.configurations}"
    if row.selection == "oracle":
        return f"ORACLE, best {count} by mean TEST score, an upper bound and not a result ‡"
    return f"best {count} by mean score over seeds on {row.validation_split}"


def _validation(table: Table) -> str:
    """What validation is on the split that each row selects on: by dataset, or by method where these differ."""
    told = [(row, table.results.dataset(row.dataset).validation_on(row.validation_split)) for row in table.rows]
    pairs = list(dict.fromkeys((row.dataset, text) for row, text in told))
    if len(pairs) > len(dict(pairs)):
        pairs = methods_where(table, told)
    known = [(name, text) for name, text in pairs if text]
    return f"Validation is {group(known, len(pairs))}." if known else ""


def _validation_users(table: Table) -> str:
    users = methods_where(table, ((row, "") for row in table.rows if row.uses_validation_labels))
    if not users:
        return "No method used validation labels other than for these choices."
    names = listing(name for name, _ in users)
    return f"Methods that used validation labels before or during training, beyond these choices (†): {names}."


def _environments(table: Table) -> str:
    pairs = methods_where(table, ((row, row.environments) for row in table.rows if row.environments))
    if not pairs:
        return ""
    return f"Environments: {'; '.join(f'{value} ({names})' for value, names in _merged(pairs))}."


def _oracle(table: Table) -> str:
    pairs = methods_where(table, ((row, ", ".join(row.oracle)) for row in table.rows if row.oracle))
    if not pairs:
        return ""
    return f"Oracle information (‡): {'; '.join(f'{names} opened {value}' for value, names in _merged(pairs))}."


def _variants(table: Table) -> str:
    told = [(d.label, ", ".join(filter(None, (d.version, d.variant)))) for d in table.results.datasets]
    pairs = [f"{label}: {text}" for label, text in told if text]
    return f"Data: {'; '.join(pairs)}." if pairs else ""


def _skipped(table: Table) -> str:
    """The rows of each dataset's files that were left out: a few, or how many and the first."""
    found = [
        f"{dataset.label}: {len(dataset.skipped)}, "
        + ("; ".join(dataset.skipped) if len(dataset.skipped) <= _FEW else f"first {dataset.skipped[0]}")
        for dataset in table.results.datasets
        if dataset.skipped
    ]
    return f"Rows of the data left out: {'; '.join(found)}." if found else ""


def _protocol(table: Table) -> str:
    results = table.results
    overrides = f" Changed from the suite: {'; '.join(results.overrides)}." if results.overrides else ""
    return f"Protocol: {results.protocol}.{overrides}"


def _devices(table: Table) -> str:
    """GPUs on which cells were trained; nothing where all were on the CPU."""
    trained = {row.cell: row.device for row in table.results.rows if row.status == "ok"}
    counts = Counter(trained.values())
    on_cpu = counts.pop("", 0)
    if not counts:
        return ""
    if len(counts) == 1 and not on_cpu:
        return f"Trained on {next(iter(counts))}."
    told = [*counts.most_common(), *([("the CPU", on_cpu)] if on_cpu else [])]
    return f"Trained on {'; '.join(f'{device} ({count} of {len(trained)} cells)' for device, count in told)}."


def _difference(table: Table) -> str:
    return f"Δ is the difference to {table.results.reference} in percentage points, paired by seed."


def _average(column: AverageColumn) -> str:
    names = listing(c.label for c in column.columns) or "no dataset"
    left_out = listing(c.label for c in column.excluded)
    excluded = f"; left out because no method has a value there: {left_out}" if left_out else ""
    return f"{column.label} is the mean over {names}, its spread that of the per-seed means{excluded}."


def _stored(table: Table) -> str:
    """What failed in an earlier run and was taken from the store."""
    stored = table.results.stored
    failed = {row.cell: (row.dataset, row.method) for row in table.results.rows if row.cell in stored}
    rows = set(failed.values())
    names = methods_where(table, ((row, "") for row in table.rows if (row.dataset, row.method) in rows))
    if not names:
        return ""
    when = span(stored[cell] for cell in failed)
    told = listing(name for name, _ in names)
    return f"Failed in an earlier run ({when}) and not tried again: {told}; bench run --retry-failed does."


def _incomplete(table: Table) -> str:
    lacking = [row for row in table.rows if not row.test.complete]
    provisional = [row for row in table.rows if row.provisional]
    parts = []
    if lacking:
        parts += [_CUT[table.results.status]] if table.results.status in _CUT else []
        parts.append(f"{len(lacking)} of {len(table.rows)} cells lack values; they say so and are not ranked.")
    if provisional:
        parts.append(
            f"{len(provisional)} cell(s) are provisional: their search is unfinished, and another configuration "
            "may be selected."
        )
    if any(row.oracle_selection or row.oracle for row in table.rows):
        parts.append("Cells with oracle information (‡) are not ranked.")
    return " ".join(parts)
