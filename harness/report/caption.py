"""The caption of a table: everything a reader must know to judge the numbers, one sentence a fact."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from harness.data import in_distribution
from harness.results.aggregate import AverageColumn, ResultTable, TableRow, by_method, by_value
from harness.results.rows import METRICS, DatasetFacts
from harness.store import span
from harness.suite.settings import LAST

_FEW = 3
_BRACKETS = re.compile(r"\([^()]*\)")
_UNFINISHED = {
    "interrupted": "The run was interrupted before its end.",
    "running": "The run has not ended: it goes on, or was killed.",
}


def caption(table: ResultTable, averages: Sequence[AverageColumn] = (), *, differences: bool = False) -> list[str]:
    """Return the sentences of a table's caption, in reading order.

    Args:
        averages: the average columns shown.
        differences: True if differences to the reference row are shown.
    """
    reference = table.results.reference
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
        f"Δ is the difference to {reference} in percentage points, paired by seed." if differences else "",
        *(_average(column) for column in averages),
        _incomplete(table),
        _stored(table),
    ]
    return [sentence for sentence in sentences if sentence]


def listing(names: Iterable[str]) -> str:
    """Join labels; one with a comma outside brackets is quoted, so that a reader can tell it from two."""
    return ", ".join(f"'{name}'" if "," in _BRACKETS.sub("", name) else name for name in names)


def _each(values: dict[str, list[str]]) -> str:
    return "; ".join(f"{value} ({listing(names)})" for value, names in values.items())


def _group(pairs: Iterable[tuple[str, str]], total: int | None = None) -> str:
    """Return ``value (names); value (names)``, or the value alone if all ``total`` names have it."""
    values = by_value(pairs)
    if len(values) == 1 and total in (None, len(next(iter(values.values())))):
        return next(iter(values))
    return _each(values)


def _of_rows(table: ResultTable, text: Callable[[TableRow], str]) -> dict[str, list[str]]:
    """Return what a text says of the rows -> the rows of which it does."""
    return by_value(by_method(((row, said) for row in table.rows if (said := text(row))), table.rows))


def _metric(table: ResultTable) -> str:
    results = table.results
    names = _group((d.label, _metric_name(d)) for d in results.datasets)
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


def _metric_name(dataset: DatasetFacts) -> str:
    name = METRICS.get(dataset.metric, dataset.metric)
    return f"{name} (mean over labelled tasks)" if dataset.task == "multitask" else name


def _draw(datasets: Sequence[DatasetFacts]) -> str:
    drawn = []
    for dataset in datasets:
        parts = [] if dataset.seed is None else [f"dataset seed {dataset.seed}"]
        parts += [] if dataset.split_seed is None else [f"split seed {dataset.split_seed}"]
        if parts:
            drawn.append((dataset.label, ", ".join(parts)))
    return f" ({_group(drawn, len(datasets))})" if drawn else ""


def _checkpoint(table: ResultTable) -> str:
    values = _of_rows(table, checkpoint_words)
    return f"Checkpoint: {next(iter(values)) if len(values) == 1 else _each(values)}." if values else ""


def checkpoint_words(row: TableRow) -> str:
    """Return the checkpoint rule of a row in words."""
    return "last epoch" if row.checkpoint == LAST else f"first epoch with the best score on {row.validation_split}"


def _configuration(table: ResultTable) -> str:
    tuned = _of_rows(table, _selector)
    return f"Configuration: {_each(tuned)}." if tuned else "Nothing was tuned."


def _selector(row: TableRow) -> str:
    if row.configurations == 1:
        return ""
    if row.selection == "oracle":
        return f"ORACLE, best of {row.configurations} by mean TEST score, an upper bound and not a result ‡"
    return f"best of {row.configurations} by mean score over seeds on {row.validation_split}"


def _validation(table: ResultTable) -> str:
    """Say what the split is that each row selects on: by dataset, or by method if these differ."""
    kinds = []
    for row in table.rows:
        dataset, split = table.results.dataset(row.dataset), row.validation_split
        named = "in-distribution" if in_distribution(split) else f"split {split}"
        kinds.append((row, dataset.validation if split == dataset.default_val else named))
    pairs = list(dict.fromkeys((row.dataset, kind) for row, kind in kinds))
    if len(pairs) > len(dict(pairs)):
        pairs = by_method(kinds, table.rows)
    known = [(name, kind) for name, kind in pairs if kind]
    return f"Validation is {_group(known, len(pairs))}." if known else ""


def _validation_users(table: ResultTable) -> str:
    users = _of_rows(table, lambda row: "†" if row.uses_validation_labels else "")
    if not users:
        return "No method used validation labels other than for these choices."
    names = listing(users["†"])
    return f"Methods that used validation labels before or during training, beyond these choices (†): {names}."


def _environments(table: ResultTable) -> str:
    values = _of_rows(table, lambda row: row.environments)
    return f"Environments: {_each(values)}." if values else ""


def _oracle(table: ResultTable) -> str:
    values = _of_rows(table, lambda row: ", ".join(row.oracle))
    opened = "; ".join(f"{listing(names)} opened {value}" for value, names in values.items())
    return f"Oracle information (‡): {opened}." if opened else ""


def _variants(table: ResultTable) -> str:
    variants = [(d.label, ", ".join(filter(None, (d.version, d.variant)))) for d in table.results.datasets]
    pairs = [f"{label}: {variant}" for label, variant in variants if variant]
    return f"Data: {'; '.join(pairs)}." if pairs else ""


def _skipped(table: ResultTable) -> str:
    """Count the rows of each dataset's files that were left out, and name the first."""
    skipped = [(dataset.label, dataset.skipped) for dataset in table.results.datasets if dataset.skipped]
    parts = [f"{label}: {len(rows)}, {'; '.join(rows[:_FEW])}{'; …' if rows[_FEW:] else ''}" for label, rows in skipped]
    return f"Rows of the data left out: {'; '.join(parts)}." if parts else ""


def _protocol(table: ResultTable) -> str:
    results = table.results
    overrides = f" Changed from the suite: {'; '.join(results.overrides)}." if results.overrides else ""
    return f"Protocol: {'; '.join([results.protocol, *_departures(table)])}.{overrides}"


def _departures(table: ResultTable) -> list[str]:
    """Say what was done otherwise than the names of data and protocol promise, and where, unless everywhere."""
    found: dict[str, list[TableRow]] = {}
    for row in table.rows:
        entry = table.results.entry(row.dataset, row.method)
        assert entry is not None
        for text in (*table.results.dataset(row.dataset).departures, *entry.departures):
            found.setdefault(text, []).append(row)
    return [text + _where(table, rows) for text, rows in found.items()]


def _where(table: ResultTable, rows: Sequence[TableRow]) -> str:
    """Return ``(names)`` of what some rows are: datasets, methods, or methods on datasets; empty if it is all rows."""
    places, every = (dict.fromkeys((row.dataset, row.method) for row in some) for some in (rows, table.rows))
    if len(places) == len(every):
        return ""
    datasets = {dataset: {place for place in every if place[0] == dataset} for dataset, _ in places}
    if all(whole <= places.keys() for whole in datasets.values()):
        return f" ({listing(datasets)})"
    return f" ({listing(name for name, _ in by_method(((row, '') for row in rows), table.rows))})"


def _devices(table: ResultTable) -> str:
    """Name the GPUs on which cells were trained; empty if all were trained on the CPU."""
    trained = {row.cell: row.device for row in table.results.rows if row.status == "ok"}
    counts = Counter(trained.values())
    on_cpu = counts.pop("", 0)
    if not counts:
        return ""
    if len(counts) == 1 and not on_cpu:
        return f"Trained on {next(iter(counts))}."
    devices = [*counts.most_common(), *([("the CPU", on_cpu)] if on_cpu else [])]
    return f"Trained on {'; '.join(f'{device} ({count} of {len(trained)} cells)' for device, count in devices)}."


def _average(column: AverageColumn) -> str:
    names = listing(c.label for c in column.columns) or "no dataset"
    left_out = listing(c.label for c in column.excluded)
    excluded = f"; left out because no method has a value there: {left_out}" if left_out else ""
    return f"{column.label} is the mean over {names}, its spread that of the per-seed means{excluded}."


def _stored(table: ResultTable) -> str:
    """Name the cells that failed in an earlier run and were taken from the store."""
    stored = table.results.stored
    failed = {row.cell: (row.dataset, row.method) for row in table.results.rows if row.cell in stored}
    names = _of_rows(table, lambda row: "failed" if (row.dataset, row.method) in failed.values() else "")
    if not names:
        return ""
    when, listed = span(stored[cell] for cell in failed), listing(names["failed"])
    return f"Failed in an earlier run ({when}) and not tried again: {listed}; bench run --retry-failed does."


def _incomplete(table: ResultTable) -> str:
    lacking = [row for row in table.rows if not row.test.complete]
    provisional = [row for row in table.rows if row.provisional]
    parts = []
    if lacking:
        parts += [_UNFINISHED[table.results.status]] if table.results.status in _UNFINISHED else []
        parts.append(f"{len(lacking)} of {len(table.rows)} cells lack values; they say so and are not ranked.")
    if provisional:
        parts.append(
            f"{len(provisional)} cell(s) are provisional: their search is unfinished, and another configuration "
            "may be selected."
        )
    if any(row.oracle_selection or row.oracle for row in table.rows):
        parts.append("Cells with oracle information (‡) are not ranked.")
    return " ".join(parts)
