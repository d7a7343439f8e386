"""Run one cell again from nothing, and compare it bit for bit with what the store holds. No torch."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.engine import EngineOptions, Event
from harness.engine.devices import CPU
from harness.engine.provenance import versions
from harness.plan.build import Cell
from harness.results.run_record import CellRecord
from harness.run.collect import read_scores
from harness.run.execute import run_targets
from harness.run.find import find_cell, reopen_cell
from harness.run.session import Options, Session
from harness.store import Failure, Meta, Store, difference


@dataclass(frozen=True)
class Reproduction:
    """A cell run again.

    Attributes:
        cell, run: which cell, and the run it is from.
        same_key: code, data and settings are those of the run; where not, ``changed`` says what differs.
        scores: every value by ``split``, ``rule`` and ``metric``: ``before`` and ``now``, None where a side has none.
        same_logits: all predictions are equal bit for bit; None where the store no longer holds them.
        failure: why there is nothing to compare.
        versions: package, or ``device`` -> (when the cell was trained, now), where they differ.
    """

    cell: CellRecord
    run: str
    same_key: bool
    changed: str
    scores: tuple[Mapping[str, Any], ...]
    same_logits: bool | None
    failure: Failure | None
    versions: dict[str, tuple[str, str]]

    @property
    def identical(self) -> bool:
        """True if everything that can be compared is equal bit for bit."""
        equal = all(score["before"] == score["now"] for score in self.scores)
        return self.failure is None and bool(self.scores) and equal and self.same_logits is not False


def reproduce(
    cell_id: str,
    options: Options,
    engine: EngineOptions,
    observe: Callable[[Session], Callable[[Event], None]],
) -> Reproduction:
    """Run a cell, and all that it builds on, in a store of its own that is removed afterwards.

    Args:
        cell_id: as the report and the run's record name it.
        options: where store and data are.
        engine: how stages run.
        observe: makes the progress display of the opened suite.

    Raises:
        UserError: no run has the cell, or its run folder is incomplete.
        DataError: the data files are gone or cannot be read.
    """
    store = Store(options.store)
    record, cell = find_cell(cell_id, store)
    with tempfile.TemporaryDirectory(prefix="bench-reproduce-") as folder:
        opened = reopen_cell(record, cell, store, replace(options, store=Path(folder) / "store"))
        session, planned, log = opened.session, opened.cell, Path(folder) / "workers.log"
        failure = run_targets(session, engine, observe(session), [planned.score], log)
        same_key = planned.score == cell.score
        before, now = _values(store, cell.score), _values(session.store, planned.score)
        names = ("split", "rule", "metric")
        made = store.record(cell.train).get("provenance") or record.provenance  # the run may have found it cached
        made_now = session.store.record(planned.train).get("provenance", {})
        return Reproduction(
            cell=cell,
            run=record.id,
            same_key=same_key,
            changed="" if same_key else _changed(cell, planned, store, session),
            scores=tuple(
                {**dict(zip(names, place, strict=True)), "before": before.get(place), "now": now.get(place)}
                for place in dict.fromkeys([*before, *now])
            ),
            same_logits=None if failure else _same_logits(store.meta(cell.train), session.store.meta(planned.train)),
            failure=failure,
            versions=_changed_versions(made, made_now),
        )


def _changed(cell: CellRecord, planned: Cell, store: Store, session: Session) -> str:
    meta = store.meta(cell.train)
    if meta is None:
        return "the store no longer holds the cell's training"
    return "; ".join(difference(meta.preimage, session.plan.stages[planned.train].preimage)) or "the score's data"


def _values(store: Store, key: str) -> dict[tuple[str, str, str], float | None]:
    return {(row.split, row.rule, row.metric): row.value for row in read_scores(store, key) or ()}


def _same_logits(before: Meta | None, now: Meta | None) -> bool | None:
    if before is None or now is None:
        return None
    name = "predictions.safetensors"
    return bool(before.files[name]["sha256"] == now.files[name]["sha256"])


def _changed_versions(made: Mapping[str, Any], made_now: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    then = {"device": made.get("device", CPU), **made.get("versions", {})}
    now = {"device": made_now.get("device", CPU), **versions()}
    pairs = {name: (str(then.get(name, "absent")), str(now.get(name, "absent"))) for name in {**then, **now}}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
