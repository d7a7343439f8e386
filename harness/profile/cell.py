"""Measure one cell's training part by part, beside the plain baseline's on the same data, for ``bench profile``.

The training is the stage's own body with its own loop: only the function that it calls to fit is replaced, by one that
ends after a number of steps. Nothing of it is stored.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from harness.component import BUILT_IN
from harness.engine import EngineOptions, Event
from harness.engine.devices import CPU, on_device
from harness.engine.process_state import one_thread
from harness.errors import BenchError
from harness.profile.training import MARK, RECORDED, EnoughError, Limits, Measurement, TrainingProfile
from harness.run.execute import run_targets
from harness.run.find import OpenedCell
from harness.safe_io import file_name, writing
from harness.stages import train
from harness.stages.context import Context
from harness.stages.payloads import TrainPayload
from harness.store import Stage
from harness.suite.settings import TrainSettings
from harness.training import bases
from harness.training.loop import TrainingData


@dataclass(frozen=True)
class CallCost:
    """An operation of torch, or a Python function: calls and own seconds in one step, and its share of all of them."""

    name: str
    calls: float
    seconds: float
    share: float


@dataclass(frozen=True)
class CellProfile:
    """A cell's profile: stages, its training beside plain risk minimisation's, the costliest operations and functions.

    A stage's seconds are the recorded wall time, or None where it has not run.
    """

    cell: str
    method: str
    dataset: str
    seed: int
    config: str
    stages: list[dict[str, Any]]
    batch_size: int
    training: TrainingProfile
    erm: TrainingProfile
    operations: list[CallCost]
    functions: list[CallCost]
    trace: str | None

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        times = {name: getattr(self.training, name) / getattr(self.erm, name) for name in ("step", "total")}
        return {**asdict(self), "times_erm": times}


def profile(
    addressed: OpenedCell,
    limits: Limits,
    observe: Callable[[Event], None],
    *,
    top: int = 12,
    functions: bool = False,
    trace: Path | None = None,
    device: str = CPU,
) -> CellProfile:
    """Measure a cell's training and the plain baseline's on the same data, in this process.

    Stages before the training that the store lacks run first, told to ``observe``; they are stored, as in a run.
    ``top`` operations are listed, and with ``functions`` as many Python functions; ``trace`` is the folder of a Chrome
    trace.

    Raises:
        UserError: the folder for the trace cannot be made, and nothing has been run; or the training ended too soon.
        BenchError: a stage before the training failed.
        Exception: whatever the learner raises.
    """
    session, cell = addressed.session, addressed.cell
    path = None
    if trace is not None:
        with writing(trace):
            trace.mkdir(parents=True, exist_ok=True)
        path = str(trace / file_name(f"{cell.method}-{cell.dataset}-{cell.id}.trace.json"))
    with tempfile.TemporaryDirectory(prefix="bench-profile-") as folder:
        inline, log = EngineOptions("inline", device=device), Path(folder) / "workers.log"
        failure = run_targets(session, inline, observe, addressed.train.inputs, log)
    if failure is not None:
        raise BenchError(f"a stage before the training failed: {failure.reason}")
    context = Context(session.store, session.data_dir, device)
    own = _measure(addressed.train, context, limits, functions=functions)
    if path is not None:
        own.recorded.export_chrome_trace(path)
    operations = [event for event in own.recorded.key_averages() if not event.key.startswith(MARK)]
    calls = [entry for record in own.python for entry in record.getstats()]
    needed = session.plan.ancestry(cell.score)
    return CellProfile(
        cell=cell.id,
        method=cell.method,
        dataset=cell.dataset,
        seed=cell.seed,
        config=cell.configuration.id,
        stages=[
            {"kind": stage.kind, "title": stage.title, "seconds": session.store.record(key).get("seconds")}
            for key, stage in session.plan.stages.items()
            if key in needed
        ],
        batch_size=cell.configuration.train.batch_size,
        training=own.result,
        erm=_measure(_plain(addressed.train), context, limits).result,
        operations=_costliest([(event.key, event.count, event.self_cpu_time_total / 1e6) for event in operations], top),
        functions=_costliest([(_place(entry.code), entry.callcount, entry.inlinetime) for entry in calls], top),
        trace=path,
    )


def _costliest(rows: Iterable[tuple[str, int, float]], top: int) -> list[CallCost]:
    """Return the costliest of some names with calls and seconds in all recorded steps."""
    ordered = sorted(rows, key=lambda row: -row[2])
    total = sum(spent for _, _, spent in ordered) or 1.0
    return [CallCost(name, calls / RECORDED, spent / RECORDED, spent / total) for name, calls, spent in ordered[:top]]


def _place(code: Any) -> str:
    """Name a function as ``folder/file.py:LINE(name)``; one that is not written in Python by its name."""
    if isinstance(code, str):
        return code
    return f"{'/'.join(Path(code.co_filename).parts[-2:])}:{code.co_firstlineno}({code.co_name})"


def _plain(stage: Stage) -> Stage:
    """Return the same training of the plain baseline: mean risk alone, no environments and nothing upstream."""
    base = bases.Baseline
    learner = {"kind": base.kind, "name": base.name, "module": base.__module__, "qualname": base.__qualname__}
    payload: TrainPayload = stage.payload
    networks = replace(payload.networks, settings=replace(payload.networks.settings, groups_per_batch=0))
    reference = {**learner, "file": bases.__file__, "plugin": BUILT_IN, "params": {}}
    nothing: dict[str, Any] = {"annotate": None, "environment": None, "quantify": [], "upstream": {}}
    return replace(stage, payload=replace(payload, learner=reference, networks=networks, **nothing))


def _measure(stage: Stage, context: Context, limits: Limits, *, functions: bool = False) -> Measurement:
    """Measure the training of a stage whose inputs are in the store."""
    measured: list[Measurement] = []

    def fit(learner: bases.Learner, data: TrainingData, settings: TrainSettings, *, seed: int) -> None:
        measured.append(Measurement(learner, data, settings, seed, limits, context.device, functions=functions))
        raise EnoughError

    with one_thread(), on_device(context.device), patch.object(train, "fit", fit), suppress(EnoughError):
        train.body(stage, context)
    return measured[0]
