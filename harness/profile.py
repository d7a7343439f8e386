"""Measure one cell's training part by part, beside the plain baseline's on the same data, for ``bench profile``.

The training is the stage's own body with its own loop: only the function that it calls to fit is replaced, by one that
ends after a number of steps. Nothing of it is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import islice
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
from harness.graphs import PackedGraphs
from harness.randomness import generator
from harness.run.execute import run_targets
from harness.run.find import OpenedCell
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
STEPS = 30
"""Most steps, and batches of each other kind, that are measured."""
SECONDS: Final = 8.0
"""After which no further step is measured."""
RECORDED: Final = 5
"""Steps that torch's profiler records: it slows a step."""
STEP_PARTS: Final = ("forward", "loss", "backward", "optimizer", "other")
MARK: Final = "bench: "
"""Put before a part's name in the profiler's record."""


@dataclass(frozen=True)
class TrainingProfile:
    """One learner's training, measured on its first steps. Times are seconds of processor time.

    ``sections`` are the parts of one step, ``batch`` (gathering the graphs) among them; ``fit_start`` and
    ``epoch_hooks`` are the learner's own start of a training and of an epoch, ``evaluation`` is an epoch's predicting
    of the validation splits.
    """

    steps: int
    sections: dict[str, float]
    fit_start: float
    epoch_hooks: float
    evaluation: float
    steps_per_epoch: int
    epochs: int

    @property
    def step(self) -> float:
        """One step in all."""
        return sum(self.sections.values())

    @property
    def epoch(self) -> float:
        """One epoch in all."""
        return self.steps_per_epoch * self.step + self.epoch_hooks + self.evaluation

    @property
    def total(self) -> float:
        """The whole training."""
        return self.fit_start + self.epochs * self.epoch


class EnoughError(Exception):
    """Ends a training that has been measured."""


class Measurement:
    """The measurement of one training on a device."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._recorded = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])

    def measure(self, learner: Learner, data: TrainingData, settings: TrainSettings, seed: int) -> TrainingProfile:
        """Train until there are enough steps, then gather batches and predict validation."""
        starts, epoch_starts, steps = self._train(learner, data, settings, seed)
        batches = epoch_batches(
            data.train,
            settings.batch_size,
            generator(seed, "order"),
            groups_per_batch=settings.groups_per_batch,
            drop_last=settings.drop_last,
            reorder=learner.training_order,
        )
        count, gathering = self._clock(lambda: sum(1 for _ in islice(batches, STEPS)))
        return TrainingProfile(
            steps=len(steps),
            sections={"batch": gathering / count, **_parts(self._recorded.events(), median(steps))},
            fit_start=sum(starts),
            epoch_hooks=median(epoch_starts),
            evaluation=sum(self._predicting(learner, graphs, settings) for graphs in data.validation.values()),
            steps_per_epoch=loop.total_steps(data.train, replace(settings, epochs=1)),
            epochs=settings.epochs,
        )

    def _predicting(self, learner: Learner, graphs: PackedGraphs, settings: TrainSettings) -> float:
        """Return the seconds of predicting a split, from its first batches."""
        batches = list(islice(graphs.batches(settings.eval_batch_size), STEPS))
        logits, seconds = self._clock(loop.predict, learner, batches)
        return seconds * len(graphs) / len(logits)

    def _train(
        self, learner: Learner, data: TrainingData, settings: TrainSettings, seed: int
    ) -> tuple[list[float], list[float], list[float]]:
        """Return the seconds of the learner's start of training and of epochs, and of the measured steps."""
        starts, epoch_starts, steps = list[float](), list[float](), list[float]()
        phases = self._phases()

        def timed(function: Callable[..., Result], times: list[float]) -> Callable[..., Result]:
            def call(*args: Any) -> Result:
                result, seconds = self._clock(function, *args)
                times.append(seconds)
                return result

            return call

        step = timed(self._marked("other", learner.training_step), steps)

        def training_step(*args: Any) -> Any:
            terms = step(*args)
            if next(phases, self) is self:
                raise EnoughError
            return terms

        own: dict[str, Any] = {
            "on_fit_start": timed(learner.on_fit_start, starts),
            "on_epoch_start": timed(learner.on_epoch_start, epoch_starts),
            "training_step": training_step,
            "loss": self._marked("loss", learner.loss),
        }
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
            raise UserError(f"the training ended after {len(steps)} steps, too few to measure it")
        return starts, epoch_starts, steps[WARM_UP:-RECORDED]

    def _phases(self) -> Generator[None, None, None]:
        """Advanced after each step: warm up, measure, record."""
        for _ in range(WARM_UP):
            yield
        end = time.perf_counter() + SECONDS
        for _ in range(STEPS):
            yield
            if time.perf_counter() > end:
                break
        with self._recorded:
            for _ in range(RECORDED):
                yield

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


def profile(
    opened: OpenedCell, observe: Callable[[Event], None], *, device: str = CPU
) -> tuple[TrainingProfile, TrainingProfile]:
    """Measure a cell's training and the plain baseline's on the same data, in this process.

    Stages before the training that the store lacks run first, told to ``observe``; they are stored, as in a run.

    Raises:
        UserError: the training ended too soon.
        BenchError: a stage before the training failed.
        Exception: whatever the learner raises.
    """
    session = opened.session
    failure = run_targets(session, EngineOptions("inline", device=device), observe, opened.train.inputs)
    if failure is not None:
        raise BenchError(f"a stage before the training failed: {failure.reason}")
    context = Context(session.store, session.data_dir, device)
    return _measure(opened.train, context), _measure(_plain(opened.train), context)


def _plain(stage: Stage) -> Stage:
    """Return the same training of the plain baseline: mean risk alone, no environments and nothing upstream."""
    base = bases.Baseline
    learner = {"kind": base.kind, "name": base.name, "module": base.__module__, "qualname": base.__qualname__}
    payload: TrainPayload = stage.payload
    networks = replace(payload.networks, settings=replace(payload.networks.settings, groups_per_batch=0))
    reference = {**learner, "file": bases.__file__, "plugin": BUILT_IN, "params": {}}
    nothing: dict[str, Any] = {"annotate": None, "environment": None, "quantify": [], "upstream": {}}
    return replace(stage, payload=replace(payload, learner=reference, networks=networks, **nothing))


def _measure(stage: Stage, context: Context) -> TrainingProfile:
    """Measure the training of a stage whose inputs are in the store."""
    measured: list[TrainingProfile] = []

    def fit(learner: Learner, data: TrainingData, settings: TrainSettings, *, seed: int) -> None:
        measured.append(Measurement(context.device).measure(learner, data, settings, seed))
        raise EnoughError

    with one_thread(), on_device(context.device), patch.object(train, "fit", fit), suppress(EnoughError):
        train.body(stage, context)
    return measured[0]
