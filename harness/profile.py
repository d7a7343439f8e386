"""Measure one cell's training part by part, beside the plain baseline's on the same data, for ``bench profile``.

The training is the stage's own body with its own loop: only the function that it calls to fit is replaced, by one that
ends after a number of steps. Nothing of it is stored.
"""

from __future__ import annotations

import cProfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeVar
from unittest.mock import patch

import torch
from torch import nn
from torch.autograd.profiler import record_function
from torch.optim.optimizer import register_optimizer_step_post_hook

from harness.component import BUILT_IN
from harness.engine import EngineOptions, Event
from harness.engine.devices import CPU, on_device
from harness.engine.process_state import one_thread
from harness.errors import BenchError, UserError
from harness.graphs import Batch, PackedGraphs
from harness.randomness import generator
from harness.run.execute import run_targets
from harness.run.find import OpenedCell
from harness.safe_io import file_name, writing
from harness.stages import train
from harness.stages.context import Context
from harness.stages.payloads import TrainPayload
from harness.store import Stage
from harness.suite.settings import TrainSettings
from harness.training import bases, loop
from harness.training.bases import Learner
from harness.training.loop import TrainingData
from harness.training.sampler import epoch_batches

Result = TypeVar("Result")
WARM_UP: Final = 3
"""Steps that are not measured: the first ones fill caches and make the optimizer's state."""
RECORDED: Final = 5
"""Steps that torch's profiler records, and then Python's: recording slows a step, and a long trace is hard to read."""
STEP_PARTS: Final = ("forward", "loss", "backward", "optimizer", "other")
MARK: Final = "bench: "
"""Put before a part's name in a trace."""


@dataclass(frozen=True)
class Limits:
    """Limits of a measurement: steps, and seconds of each part; ``epoch`` is the learner's in the measured steps."""

    steps: int = 30
    seconds: float = 8.0
    epoch: int = 0


@dataclass
class TrainingProfile:
    """One learner's training, measured on its first steps. Times are seconds of processor time.

    ``sections`` are the parts of one step, ``batch`` (gathering the graphs) among them; ``fit_start`` and
    ``epoch_hooks`` are the learner's own start of a training and of an epoch, ``evaluation`` is an epoch's predicting
    of the validation splits; ``parameters`` counts trained values.
    """

    steps: int
    sections: dict[str, float]
    fit_start: float
    epoch_hooks: float
    evaluation: float
    steps_per_epoch: int
    epochs: int
    parameters: int
    step: float = field(init=False)
    epoch: float = field(init=False)
    total: float = field(init=False)

    def __post_init__(self) -> None:
        self.step = sum(self.sections.values())
        self.epoch = self.steps_per_epoch * self.step + self.epoch_hooks + self.evaluation
        self.total = self.fit_start + self.epochs * self.epoch


class EnoughError(Exception):
    """Ends a training that has been measured."""


class Measurement:
    """One training: what it took, and the records of torch's and Python's profilers."""

    def __init__(
        self,
        learner: Learner,
        data: TrainingData,
        settings: TrainSettings,
        seed: int,
        limits: Limits,
        device: str,
        *,
        functions: bool,
    ) -> None:
        self._limits, self._device = limits, device
        self._times: list[float] = []
        self.recorded = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        self.python = [cProfile.Profile()] if functions else []
        per_epoch = loop.total_steps(data.train, replace(settings, epochs=1))
        starts, epoch_starts = self._train(learner, data, settings, seed, per_epoch)
        batches = epoch_batches(
            data.train,
            settings.batch_size,
            generator(seed, "order"),
            groups_per_batch=settings.groups_per_batch,
            drop_last=settings.drop_last,
            reorder=learner.training_order,
        )
        count, gathering = self._clock(lambda: sum(1 for _ in self._in_time(batches)))
        self.result = TrainingProfile(
            steps=len(self._times),
            sections={"batch": gathering / count, **_parts(self.recorded.events(), median(self._times))},
            fit_start=sum(starts),
            epoch_hooks=median(epoch_starts),
            evaluation=sum(self._predicting(learner, graphs, settings) for graphs in data.validation.values()),
            steps_per_epoch=per_epoch,
            epochs=settings.epochs,
            parameters=sum(value.numel() for value in learner.parameters()),
        )

    def _predicting(self, learner: Learner, graphs: PackedGraphs, settings: TrainSettings) -> float:
        """Return the seconds of predicting a split, from as many batches as there is time for."""
        batches = list(self._in_time(graphs.batches(settings.eval_batch_size)))
        logits, seconds = self._clock(loop.predict, learner, self._in_time(batches))
        return seconds * len(graphs) / len(logits)

    def _train(
        self, learner: Learner, data: TrainingData, settings: TrainSettings, seed: int, per_epoch: int
    ) -> tuple[list[float], list[float]]:
        """Train until all phases are through; returns the seconds of the learner's start of training and of epochs."""
        fit_start, epoch_start = learner.on_fit_start, learner.on_epoch_start
        step = self._marked("other", learner.training_step)
        starts: list[float] = []
        epoch_starts: list[float] = []
        phases = self._phases()

        def on_fit_start(graphs: PackedGraphs) -> None:
            starts.append(self._clock(fit_start, graphs)[1])
            learner.step += self._limits.epoch * per_epoch

        def on_epoch_start(graphs: PackedGraphs) -> None:
            learner.epoch += self._limits.epoch
            epoch_starts.append(self._clock(epoch_start, graphs)[1])

        def training_step(*args: Any) -> Any:
            terms, seconds = self._clock(step, *args)
            self._times.append(seconds)
            if next(phases, self) is self:
                raise EnoughError
            return terms

        own: dict[str, Any] = {"on_fit_start": on_fit_start, "on_epoch_start": on_epoch_start}
        own |= {"training_step": training_step, "loss": self._marked("loss", learner.loss)}
        next(phases)
        with (
            closing(phases),
            patch.multiple(learner, **own),
            patch.object(nn.Module, "__call__", self._marked("forward", nn.Module.__call__)),
            patch.object(torch.autograd, "backward", self._marked("backward", torch.autograd.backward)),
            patch.object(torch.autograd, "grad", self._marked("backward", torch.autograd.grad)),
            register_optimizer_step_post_hook(lambda *_: self._wait()),
            suppress(EnoughError),
        ):
            loop.fit(learner, data, replace(settings, epochs=10**6, patience=0), seed=seed)
            raise UserError(f"the training ended after {len(self._times)} steps, too few to measure it")
        return starts, epoch_starts

    def _phases(self) -> Generator[None, None, None]:
        """Advanced after each step: warm up, measure, record by torch's profiler, then by Python's where asked for."""
        for _ in range(WARM_UP):
            yield
        self._times.clear()
        end = time.perf_counter() + self._limits.seconds
        while not self._times or (len(self._times) < self._limits.steps and time.perf_counter() < end):
            yield
        measured = list(self._times)
        recorders: list[AbstractContextManager[Any]] = [self.recorded, *self.python]
        for recorder in recorders:
            with recorder:
                for _ in range(RECORDED):
                    yield
        self._times = measured

    def _marked(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Mark the outermost calls of a function in torch's record as a part of the step."""
        inside = False

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside:
                return function(*args, **kwargs)
            inside = True
            try:
                self._wait()
                with record_function(MARK + part):
                    result = function(*args, **kwargs)
                    self._wait()
                return result
            finally:
                inside = False

        return call

    def _clock(self, function: Callable[..., Result], *args: Any) -> tuple[Result, float]:
        """Return the function's result and its processor time, which other processes change little."""
        began = time.process_time()
        result = function(*args)
        self._wait()
        return result, time.process_time() - began

    def _wait(self) -> None:
        """Let a GPU end what it has been given, so that it counts where it was asked for."""
        if self._device != CPU:
            torch.cuda.synchronize()

    def _in_time(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Batches until the time is up, at least one."""
        end = time.perf_counter() + self._limits.seconds / 2
        for batch in batches:
            yield batch
            if time.perf_counter() > end:
                return


def _parts(events: Iterable[Any], step: float) -> dict[str, float]:
    """Return a step's seconds by part, divided as the recorded steps are (medians)."""
    steps = []
    for event in events:
        if event.name == MARK + "other":
            steps.append(dict.fromkeys(STEP_PARTS, 0.0))
            _add(event, "other", steps[-1])
    typical = {part: median(own[part] for own in steps) for part in STEP_PARTS}
    whole = sum(typical.values())
    return {part: step * spent / whole for part, spent in typical.items()}


def _add(event: Any, part: str, own: dict[str, float]) -> None:
    """Add an event's own time, and that of all within it, to the innermost part that each stands in."""
    if event.name.startswith(MARK):
        part = event.name.removeprefix(MARK)
    elif event.name.startswith("Optimizer.step#"):  # torch's own mark
        part = "optimizer"
    own[part] += event.self_cpu_time_total
    for child in event.cpu_children:
        _add(child, part, own)


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
    failure = run_targets(session, EngineOptions("inline", device=device), observe, addressed.train.inputs)
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
