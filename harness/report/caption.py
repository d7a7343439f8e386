"""The caption of a table, three sentences that a paper can print, and the notes to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from harness.data import in_distribution
from harness.errors import listed
from harness.report.table import one_line
from harness.results.aggregate import AverageColumn, ResultTable, TableRow, by_value, names_of
from harness.results.rows import METRICS, DatasetFacts
from harness.results.selection import lost_candidates
from harness.store import span
from harness.suite.settings import LAST, SAMPLERS

_FEW = 3
_UNFINISHED = {
    "interrupted": "The run was interrupted before its end.",
    "running": "The run has not ended: it goes on, or was killed.",
}


def caption(table: ResultTable) -> tuple[str, ...]:
    """Return three sentences: what was measured, on which terms, and how checkpoint and configuration were chosen."""
    protocol = "; ".join([table.results.protocol, *_departures(table)])
    return _metric(table), f"Protocol: {protocol}.", _selection(table)


def table_notes(
    table: ResultTable, averages: Sequence[AverageColumn] = (), *, differences: bool = False
) -> tuple[str, ...]:
    """Return the notes to a table, one sentence a fact, in reading order.

    Args:
        averages: the average columns shown.
        differences: True if differences to the reference row are shown.
    """
    reference = table.results.reference
    sentences = [
        _incomplete(table),
        _lost(table),
        _validation_users(table),
        _oracle(table),
        f"Δ is the difference to {reference} in percentage points, paired by seed." if differences else "",
        *(_average(column) for column in averages),
        _validation(table),
        _by_dataset(table, "Environments", lambda row: row.environments),
        _by_dataset(table, "Configurations", lambda row: str(row.configurations)),
        _data(table.results.datasets),
        _skipped(table),
        _devices(table),
        _stored(table),
        "The command line changed settings of the suite; the run's page lists them." if table.results.overrides else "",
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _group(pairs: Iterable[tuple[str, str]], total: int | None = None) -> str:
    """Return ``value (names); value (names)``, or the value alone if all ``total`` names have it."""
    values = by_value(pairs)
    if len(values) == 1 and total in (None, len(next(iter(values.values())))):
        return next(iter(values))
    return "; ".join(f"{value} ({listed(names)})" for value, names in values.items())


def _of_rows(table: ResultTable, text: Callable[[TableRow], str]) -> str:
    """Return what a text says of the rows, and of which unless of all; empty texts are left out."""
    values = by_value((row, said) for row in table.rows if (said := text(row)))
    return "; ".join(value + _where(table, rows) for value, rows in values.items())


def _metric(table: ResultTable) -> str:
    results = table.results
    metrics = " and ".join(dict.fromkeys(map(_metric_name, results.datasets)))
    splits = {column.split for column in table.columns}
    split = "" if splits <= {"test"} else f" on {' and '.join(sorted(splits))}"
    seeds, draw = ", ".join(map(str, results.seeds)), "on one draw of the data"
    if len(results.seeds) == 1:
        return f"Test {metrics} in percent{split}, n=1: one training seed ({seeds}) {draw}, hence no spread."
    spread = f"mean ± sample standard deviation over {len(results.seeds)} training seeds ({seeds}) {draw}"
    return f"Test {metrics} in percent{split}: {spread}."


def _metric_name(dataset: DatasetFacts) -> str:
    name = METRICS.get(dataset.metric, dataset.metric)
    return f"{name} (mean over labelled tasks)" if dataset.task == "multitask" else name


def _selection(table: ResultTable) -> str:
    rules = {_selector(row) for row in table.rows} - {""}
    tuned = next(iter(rules)) if len(rules) == 1 else _of_rows(table, _selector)
    configuration = f"configuration: {tuned}{_trials(table)}" if tuned else "nothing was tuned"
    return f"Checkpoint: {_of_rows(table, checkpoint_words)}; {configuration}."


def _trials(table: ResultTable) -> str:
    """Say among how many trials of which sampler; nothing of whole grids and budgets, whose size a column tells."""
    tune = table.results.tune
    if tune is None:
        return ""
    fewer = any(1 < row.configurations < tune.trials for row in table.rows)
    return f" among {'at most ' if fewer else ''}{tune.trials} trials each ({SAMPLERS[tune.sampler]}, Optuna)"


def checkpoint_words(row: TableRow) -> str:
    """Return the checkpoint rule of a row in words."""
    return "last epoch" if row.checkpoint == LAST else f"first epoch with the best score on {row.validation_split}"


def _selector(row: TableRow) -> str:
    if row.configurations == 1:
        return ""
    if row.selection == "oracle":
        return "ORACLE, best mean TEST score, an upper bound and not a result ‡"
    return f"best mean score over seeds on {row.validation_split}"


def _lost(table: ResultTable) -> str:
    """Name the configurations of searches that lack values, which no row shows."""
    lost = [one_line(told) for _, told in lost_candidates(table.results)]
    more = f"; and {len(lost) - _FEW} more, which `bench runs` lists" if len(lost) > _FEW else ""
    return f"Configurations that lack values: {'; '.join(lost[:_FEW])}{more}." if lost else ""


def _validation(table: ResultTable) -> str:
    """Say what the split is that each row selects on."""

    def kind(row: TableRow) -> str:
        dataset, split = table.results.dataset(row.dataset), row.validation_split
        named = "in-distribution" if in_distribution(split) else f"split {split}"
        return dataset.validation if split == dataset.default_val else named

    kinds = _of_rows(table, kind)
    return f"Validation is {kinds}." if kinds else ""


def _validation_users(table: ResultTable) -> str:
    """Explain †, and name the rows where it holds on some datasets alone."""
    users = [row for row in table.rows if row.uses_validation_labels]
    if not users:
        return "No method used validation labels other than for checkpoint and configuration."
    partly = [name for name in names_of(users, table.rows) if name not in table.results.methods]
    where = f" (of some rows on some datasets alone: {listed(partly)})" if partly else ""
    return f"†: used validation labels before or during training, beyond these choices{where}."


def _oracle(table: ResultTable) -> str:
    """Explain ‡."""
    opened = _of_rows(table, lambda row: f"opened {', '.join(row.oracle)}" if row.oracle else "")
    chosen = "configuration chosen on test scores" if any(row.oracle_selection for row in table.rows) else ""
    what = "; ".join(filter(None, (chosen, opened)))
    return f"‡: oracle information, not ranked: {what}." if what else ""


def _by_dataset(table: ResultTable, name: str, text: Callable[[TableRow], str]) -> str:
    """Tell a fact by dataset for the methods that do not share it over all of theirs; the column says it of the others.

    Methods and datasets that are alike are told together.
    """
    facts = {
        method: {row.dataset: text(row) or "none" for row in table.rows if row.method == method}
        for method in table.results.methods
    }
    told = by_value((m, _group(by.items())) for m, by in facts.items() if len(set(by.values())) > 1)
    parts = [f"{listed(methods)}: {values}" for values, methods in told.items()]
    return f"{name} by dataset: {'. '.join(parts)}." if parts else ""


def _data(datasets: Sequence[DatasetFacts]) -> str:
    """Tell edition, variant and draw of the data, once for datasets that share them."""
    facts = []
    for dataset in datasets:
        parts = [dataset.version, dataset.variant]
        parts += [] if dataset.seed is None else [f"dataset seed {dataset.seed}"]
        parts += [] if dataset.split_seed is None else [f"split seed {dataset.split_seed}"]
        if any(parts):
            facts.append((dataset.label, ", ".join(filter(None, parts))))
    return f"Data: {_group(facts, len(datasets))}." if facts else ""


def _skipped(table: ResultTable) -> str:
    """Count the rows of each dataset's files that were left out, and name the first."""
    skipped = [(dataset.label, dataset.skipped) for dataset in table.results.datasets if dataset.skipped]
    parts = [f"{label}: {len(rows)}, {'; '.join(rows[:_FEW])}{'; …' if rows[_FEW:] else ''}" for label, rows in skipped]
    return f"Rows of the data left out: {'; '.join(parts)}." if parts else ""


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
        return f" ({listed(datasets)})"
    return f" ({listed(names_of(rows, table.rows))})"


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
    names = listed(c.label for c in column.columns) or "no dataset"
    left_out = listed(c.label for c in column.excluded)
    excluded = f"; left out because no method has a value there: {left_out}" if left_out else ""
    return f"{column.label} is the mean over {names}, its spread that of the per-seed means{excluded}."


def _stored(table: ResultTable) -> str:
    """Name the cells that failed in an earlier run and were taken from the store."""
    stored = table.results.stored
    failed = {row.cell: (row.dataset, row.method) for row in table.results.rows if row.cell in stored}
    rows = [row for row in table.rows if (row.dataset, row.method) in failed.values()]
    if not rows:
        return ""
    when = f"Failed in an earlier run ({span(stored[cell] for cell in failed)}) and not tried again"
    return f"{when}{_where(table, rows)}; bench run --retry-failed does."


def _incomplete(table: ResultTable) -> str:
    lacking = [row for row in table.rows if not row.test.complete]
    provisional = [row for row in table.rows if row.provisional]
    parts = []
    if lacking:
        parts += [_UNFINISHED[table.results.status]] if table.results.status in _UNFINISHED else []
        parts.append(f"{len(lacking)} of {len(table.rows)} cells lack values; they say so and are not ranked.")
    if provisional:
        cells = "1 cell is" if len(provisional) == 1 else f"{len(provisional)} cells are"
        parts.append(f"{cells} provisional: the search is unfinished, and another configuration may be selected.")
    return " ".join(parts)
