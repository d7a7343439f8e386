"""From a run's record and the store to its results: finished or not. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.engine.devices import CPU
from harness.errors import BenchError, DataError
from harness.report.caption import METRICS
from harness.results.rows import MethodFacts, ResultRow, RunResults, checkpoint_rule, spread_out, status_of_failure
from harness.results.run_record import CellRecord, RunRecord
from harness.results.selection import mark_selected
from harness.run import stage_inputs as made
from harness.run.saved_results import Kept, read_scores
from harness.store.stage import Failure
from harness.store.store import Store

TIMES = ("seconds", "cpu_seconds", "peak_memory", "peak_device_memory")
"""What the store's record of a stage says of its cost."""

_LACKING = {"1 class": "holds one class", "no labels": "has no labels"}
"""What :func:`harness.training.metrics.score` says of labels that allow no score."""


def collect(record: RunRecord, store: Store) -> RunResults:
    """The results of a run as they stand in the store, with the selected configurations marked.

    What is gone from the store is taken from the run's folder: its table outlives its artifacts.

    Raises:
        DataError: the record names cells of rows that it does not have.
    """
    facts = {(entry.dataset, entry.method): entry for entry in record.results.entries}
    stray = next((cell for cell in record.cells if (cell.dataset, cell.method) not in facts), None)
    if stray is not None:
        raise DataError(f"run {record.id}: the cell {stray.id} is of no row of its results")
    kept = Kept(record, store)
    cells = [(cell, *_cell_rows(record, cell, facts[cell.dataset, cell.method], store, kept)) for cell in record.cells]
    rows = [row for _, found, _ in cells for row in found]
    stored = {cell.id: since for cell, _, since in cells if since}
    built = {label: _built(store, key) or kept.dataset(label) for label, key in record.prepared.items()}
    datasets = tuple(replace(dataset, **built.get(dataset.label, {})) for dataset in record.results.datasets)
    trained = _trained(record)
    entries = tuple(
        replace(entry, settings=_settings(store, trained, entry) or kept.settings(entry.dataset, entry.method))
        for entry in record.results.entries
    )
    found = replace(
        record.results, datasets=datasets, entries=entries, rows=tuple(rows), status=record.status, stored=stored
    )
    return mark_selected(found)


def without_rows(record: RunRecord, results: RunResults) -> list[str]:
    """Keys of the scores of cells of which nothing is known."""
    known = {row.cell for row in results.rows}
    return [cell.score for cell in record.cells if cell.id not in known]


def _built(store: Store, key: str) -> dict[str, Any]:
    """What is known of a dataset only once it is built; empty where it is not."""
    try:
        info = store.open(key).read_json("info") if store.has(key) else None
    except BenchError:
        info = None
    if not isinstance(info, Mapping):
        return {}
    lists = {name: tuple(info.get(name, ())) for name in ("notes", "skipped")}
    return {"fingerprint": str(info.get("fingerprint", "")), **lists, **made.dataset(store, key)}


def _settings(store: Store, trained: Mapping[tuple[str, str], list[str]], entry: MethodFacts) -> dict[str, Any]:
    return made.settings(store, trained.get((entry.dataset, entry.method), ()), entry)


def _trained(record: RunRecord) -> dict[tuple[str, str], list[str]]:
    """The keys of the trainings of each dataset and method, in the order of the file."""
    found: dict[tuple[str, str], list[str]] = {}
    for cell in record.cells:
        found.setdefault((cell.dataset, cell.method), []).append(cell.train)
    return found


def _cell_rows(
    record: RunRecord, cell: CellRecord, entry: MethodFacts, store: Store, kept: Kept
) -> tuple[list[ResultRow], str]:
    """The rows of a cell, and where it failed in an earlier run, when."""
    dataset = record.results.dataset(cell.dataset)
    base = ResultRow(
        dataset=cell.dataset,
        method=cell.method,
        config_id=cell.config_id,
        hyperparameters=cell.hyperparameters,
        seed=cell.seed,
        split="",
        metric=dataset.metric,
        checkpoint="",
        status="missing",
        environments=entry.environments,
        oracle=tuple(entry.oracle),
        uses_validation_labels=cell.config_id in entry.shaped_by_validation,
        protocol=record.results.protocol,
        cell=cell.id,
        key=cell.score,
    )
    splits = [split for split, role in dataset.splits.items() if role != "train"]
    validation = record.results.validation_split(entry)
    rules = [checkpoint_rule("best-val", validation), checkpoint_rule("last", validation)]
    scores = read_scores(store, cell.score)
    if scores is not None:
        return _scored(base, scores, store.record(cell.train), splits, rules, validation), ""
    failed = any(key in record.failures for key in cell.needs)
    before = [] if failed else kept.rows(cell.id, cell.score)
    failure = (
        None if before else _failure(record, cell, store)
    )  # else a later run's failure would hide this one's value
    if failure is None:
        return before, ""
    shown = replace(base, status=status_of_failure(failure.status), reason=failure.reason, traceback=failure.traceback)
    return spread_out(shown, splits, rules), failure.since


def _scored(
    base: ResultRow,
    scores: list[dict[str, Any]],
    recorded: Mapping[str, Any],
    splits: list[str],
    rules: list[str],
    validation: str,
) -> list[ResultRow]:
    times: dict[str, Any] = {name: recorded.get(name) for name in TIMES} | {"device": _device(recorded)}
    by_place = {(row["rule"], row["split"]): row for row in scores}
    rows = []
    for rule in dict.fromkeys([*rules, *(row["rule"] for row in scores)]):
        for split in splits:
            found = by_place.get((rule, split))
            if found is None:
                rows.append(
                    replace(
                        base,
                        split=split,
                        checkpoint=rule,
                        status="undefined",
                        reason=_no_checkpoint(base.metric, validation, by_place.get((rules[1], validation)))
                        if rule != rules[1]
                        else "the weights were not finite at the end of training",
                        **times,
                    )
                )
                continue
            value: dict[str, Any] = {
                name: found[name] for name in ("split", "metric", "value", "epoch", "status", "reason")
            }
            rows.append(replace(base, checkpoint=rule, **value, **times))
    return rows


def _no_checkpoint(metric: str, split: str, last: Mapping[str, Any] | None) -> str:
    """Why no epoch had a validation score: where its labels allow none, the last epoch's score says so."""
    lacking = _LACKING.get(last["reason"] if last else "")
    if lacking is None:
        return "no checkpoint: the validation score was undefined in every epoch"
    return f"no checkpoint: validation split '{split}' {lacking}: {METRICS.get(metric, metric)} is undefined"


def _device(recorded: Mapping[str, Any]) -> str:
    device = str(recorded.get("provenance", {}).get("device", CPU))
    return "" if device == CPU else device


def _failure(record: RunRecord, cell: CellRecord, store: Store) -> Failure | None:
    """Why a cell has no score: what its own stages met, else the nearest stage it builds on."""
    skipped = None
    for key in reversed(list(cell.needs)):
        known = record.failures.get(key)
        failure = _stored_failure(record, key, store) if known is None else Failure(**known)
        if failure is None:
            continue
        if failure.status == "skipped":
            skipped = failure
        elif key in (cell.train, cell.score):
            return failure
        else:
            reason = f"needs {cell.needs[key]}: {failure.reason.partition(chr(10))[0]}"
            return Failure("skipped", reason, since=failure.since)
    return skipped


def _stored_failure(record: RunRecord, key: str, store: Store) -> Failure | None:
    """What the store holds of a run that has not told of its failures: one since its start is of the run itself."""
    failure = store.failure(key)
    began = record.started[:16].replace("T", " ")
    return replace(failure, since="") if failure is not None and failure.since >= began else failure
