"""Collect the results of a run, finished or not, from its record and the store. No torch."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from harness.engine.devices import CPU
from harness.errors import BenchError, DataError
from harness.results.rows import METRICS, STATUSES, DatasetFacts, MethodFacts, ResultRow, RunResults
from harness.results.run_record import RESULTS, CellRecord, RunRecord
from harness.results.selection import mark_selected
from harness.safe_io import parse_json_as, shown
from harness.store import COSTS, Failure, Store
from harness.suite.settings import checkpoint_rule

_LACKING = {"1 class": "holds one class", "no labels": "has no labels"}
"""Reasons of :func:`harness.training.metrics.score` for labels that allow no score."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScoreRow:
    """A row that the stage ``score`` writes."""

    split: str
    rule: str
    epoch: int | None
    metric: str
    value: float | None
    status: str
    reason: str

    def __post_init__(self) -> None:
        """Refuse what the stage cannot have written, whatever its checksum: every metric lies between -1 and 1."""
        if self.status not in ("ok", "undefined") or (self.value is None) == (self.status == "ok"):
            raise ValueError(f"status {shown(self.status)} does not go with value {self.value}")
        if self.value is not None and not -1 <= self.value <= 1:
            raise ValueError(f"{self.value} is no {shown(self.metric)}")


def collect(record: RunRecord, store: Store) -> RunResults:
    """Return the results of a run as they stand in the store, with the selected configurations marked.

    What is gone from the store is taken from the run's folder: its table outlives its artifacts.

    Raises:
        DataError: the record names cells of rows that it does not have.
    """
    entries = {(entry.dataset, entry.method): entry for entry in record.results.entries}
    saved = _saved_results(record, store)
    saved_rows: dict[tuple[str, str], list[ResultRow]] = {}
    for row in saved.rows:
        saved_rows.setdefault((row.cell, row.key), []).append(row)
    rows: list[ResultRow] = []
    stored: dict[str, str] = {}
    trained: dict[tuple[str, str], list[CellRecord]] = {}
    for cell in record.cells:
        if (cell.dataset, cell.method) not in entries:
            raise DataError(f"run {record.id}: the cell {cell.id} is of no row of its results")
        entry = entries[cell.dataset, cell.method]
        cell_rows, since = _cell_rows(record, cell, entry, store, saved_rows.get((cell.id, cell.score), []))
        rows += cell_rows
        stored |= {cell.id: since} if since else {}
        trained.setdefault((cell.dataset, cell.method), []).append(cell)
    keys = record.prepared
    datasets = [_with_data(data, store, keys.get(data.label, ""), saved) for data in record.results.datasets]
    methods = [_with_settings(entry, store, trained.get(place, ()), saved) for place, entry in entries.items()]
    return mark_selected(
        replace(
            record.results,
            datasets=tuple(datasets),
            entries=tuple(methods),
            rows=tuple(rows),
            status=record.status,
            stored=stored,
        )
    )


def without_rows(record: RunRecord, results: RunResults) -> list[str]:
    """Return the keys of the scores of cells that have no rows."""
    known = {row.cell for row in results.rows}
    return [cell.score for cell in record.cells if cell.id not in known]


def read_scores(store: Store, key: str) -> list[ScoreRow] | None:
    """Return the rows of a score's artifact; None where there is none, or a damaged one, which is put aside."""
    if not store.has(key):
        return None
    try:
        rows = parse_json_as(list[ScoreRow], store.open(key).path("scores").read_text(encoding="utf-8"))
    except (BenchError, OSError):
        return None
    except (KeyError, ValueError) as error:
        store.put_aside(key, f"these are no scores: {error.args[0]}")
        return None
    return rows


def _saved_results(record: RunRecord, store: Store) -> RunResults:
    """Return the results in the run's folder; those of the record, which have no rows, where there are none."""
    path = store.runs / record.id / RESULTS
    try:
        return RunResults.load(path) if path.is_file() else record.results
    except DataError as error:
        _log.warning("%s", error)
        return record.results


def _with_data(dataset: DatasetFacts, store: Store, key: str, saved: RunResults) -> DatasetFacts:
    """Add what is known of a dataset only once it is built: from the store, else from the saved results."""
    info = None
    if key and store.has(key):
        with suppress(BenchError):
            artifact = store.open(key)
            info = artifact.read_json("info")
    if not isinstance(info, Mapping):
        return next((other for other in saved.datasets if other.label == dataset.label), dataset)
    component = artifact.meta.preimage.get("dataset", {"name": "", "params": {}})
    return replace(
        dataset,
        fingerprint=str(info.get("fingerprint", "")),
        notes=tuple(info.get("notes", ())),
        skipped=tuple(info.get("skipped", ())),
        component=component["name"],
        values=dict(component["params"]),
    )


def _with_settings(entry: MethodFacts, store: Store, cells: Sequence[CellRecord], saved: RunResults) -> MethodFacts:
    """Add network and training, from the first training of each configuration that the store or the folder holds."""
    trained: dict[str, dict[str, Any]] = {}
    for cell in cells:
        meta = None if cell.config_id in trained else store.meta(cell.train)
        if meta is not None:
            trained[cell.config_id] = _settings(meta.preimage)
    other = saved.entry(entry.dataset, entry.method) or entry
    if not trained:
        return replace(entry, settings=other.settings, tuned_settings=other.tuned_settings)
    tuned = {path for values in entry.configurations.values() for path in values}
    first = next(iter(trained.values()))
    there = {
        config: {path: value for path, value in values.items() if path in tuned}
        for config, values in trained.items()
        if entry.tuned
    }
    return replace(
        entry,
        settings={path: value for path, value in first.items() if path not in tuned},
        tuned_settings={**other.tuned_settings, **there},
    )


def _settings(preimage: Mapping[str, Any]) -> dict[str, Any]:
    """Return network and training of a training's key by the paths of a suite."""
    settings = {
        f"{part}.{name}": value for part in ("train", "model") for name, value in preimage.get(part, {}).items()
    }
    backbone = preimage.get("backbone")
    if backbone:
        settings["model.backbone"] = backbone["name"]
        settings |= {f"model.{name}": value for name, value in backbone["params"].items()}
    return settings


def _cell_rows(
    record: RunRecord, cell: CellRecord, entry: MethodFacts, store: Store, saved: list[ResultRow]
) -> tuple[list[ResultRow], str]:
    """Return the rows of a cell, and where it failed in an earlier run, when."""
    dataset = record.results.dataset(cell.dataset)
    base = ResultRow(
        *cell.coordinates,
        split="",
        metric=dataset.metric,
        checkpoint="",
        status="missing",
        hyperparameters=cell.hyperparameters,
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
    if saved and not any(key in record.failures for key in cell.needs):
        return saved, ""  # a later run's failure does not hide this one's value
    failure = _failure(record, cell, store)
    if failure is None:
        return [], ""
    status = failure.status if failure.status in STATUSES else "failed"  # a killed worker, a full disk
    row = replace(base, status=status, reason=failure.reason, traceback=failure.traceback)
    return [replace(row, split=split, checkpoint=rule) for split in splits for rule in rules], failure.since


def _scored(
    base: ResultRow,
    scores: list[ScoreRow],
    recorded: Mapping[str, Any],
    splits: list[str],
    rules: list[str],
    validation: str,
) -> list[ResultRow]:
    """Return a row for each checkpoint rule and split, with what the training cost."""
    device = str(recorded.get("provenance", {}).get("device", CPU))
    times: dict[str, Any] = {name: recorded.get(name) for name in COSTS}
    base = replace(base, device="" if device == CPU else device, **times)
    by_place = {(row.rule, row.split): row for row in scores}
    best, last = rules
    no_checkpoint = {
        best: _no_checkpoint(base.metric, validation, by_place.get((last, validation))),
        last: "the weights were not finite at the end of training",
    }
    rows = []
    for rule in dict.fromkeys([*rules, *(row.rule for row in scores)]):
        for split in splits:
            score = by_place.get((rule, split))
            if score is None:
                reason = no_checkpoint.get(rule, no_checkpoint[best])
                rows.append(replace(base, split=split, checkpoint=rule, status="undefined", reason=reason))
            else:
                values = {name: value for name, value in vars(score).items() if name != "rule"}
                rows.append(replace(base, checkpoint=rule, **values))
    return rows


def _no_checkpoint(metric: str, split: str, last: ScoreRow | None) -> str:
    """Say why no epoch had a validation score: where its labels allow none, the last epoch's score says so."""
    lacking = _LACKING.get(last.reason if last else "")
    if lacking is None:
        return "no checkpoint: the validation score was undefined in every epoch"
    return f"no checkpoint: validation split '{split}' {lacking}: {METRICS.get(metric, metric)} is undefined"


def _failure(record: RunRecord, cell: CellRecord, store: Store) -> Failure | None:
    """Say why a cell has no score: what its own stages met, else the nearest stage it builds on."""
    began, skipped = record.started[:16].replace("T", " "), None
    for key in reversed(list(cell.needs)):
        failure = record.failures.get(key)
        if failure is None and (failure := store.failure(key)) is not None and failure.since >= began:
            failure = replace(failure, since="")  # stored since the start of the run, it is of the run itself
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
