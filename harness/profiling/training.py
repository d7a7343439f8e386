"""Run the first steps of a training as a run would, and measure them.

The training is the stage's own body with its own loop: only the function that it calls to fit is replaced, by one that
ends after so many steps. Nothing is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch

from harness.devices import on_device
from harness.engine.threads import one_thread
from harness.errors import UserError
from harness.graphs import Batch
from harness.profiling.operations import Recorder
from harness.profiling.result import Operation, TrainingProfile
from harness.profiling.sections import LOSS, OTHER, STEP_SECTIONS, Sections, watching
from harness.randomness import generator
from harness.stage import Stage
from harness.stages import train
from harness.stages.context import Context
from harness.training import bases, loop
from harness.training.sampler import epoch_batches, expected_steps

WARM_UP = 3
"""Steps that are not measured: the first ones fill caches and make the optimizer's state."""


@dataclass(frozen=True)
class Limits:
    """How much is measured: steps, and seconds of each part; ``epoch`` is the learner's in the measured steps."""

    steps: int = 30
    seconds: float = 8.0
    epoch: int = 0


@dataclass
class Measured:
    """What :func:`measure` found of one learner."""

    profile: TrainingProfile
    operations: tuple[Operation, ...] = ()
    functions: tuple[Operation, ...] = ()
    trace: Path | None = None


class _EnoughError(Exception):
    """Ends a training that has been measured."""


def measure(stage: Stage, context: Context, limits: Limits, recorder: Recorder | None = None) -> Measured:
    """Measure the training of a stage whose inputs are in the store.

    Args:
        stage: of kind ``train``.
        context: where its inputs are, and the device.
        limits: how much is measured.
        recorder: records operations of further steps, where given.

    Raises:
        UserError: the training ended before a step could be measured.
        Exception: whatever the learner raises.
    """
    found: list[Measured] = []

    def fit(learner: Any, data: Any, settings: Any, *, seed: int) -> Any:
        sections = Sections(context.device)
        found.append(_Probe(learner, data, settings, seed, limits, recorder, sections).run())
        raise _EnoughError

    with one_thread(), on_device(context.device), patch.object(train, "fit", fit), suppress(_EnoughError):
        train.body(stage, context)
    return found[0]


def plain(stage: Stage) -> Stage:
    """The same training of the plain baseline: mean risk, nothing beside it, no environments and nothing upstream."""
    base = bases.Baseline
    learner = {"kind": base.kind, "name": base.name, "module": base.__module__, "qualname": base.__qualname__}
    payload = {
        **stage.payload,
        "learner": {**learner, "file": bases.__file__, "plugin": "built-in", "params": {}},
        "loop": {**stage.payload["loop"], "groups_per_batch": 0},
        **{"annotate": None, "environment": None, "quantify": [], "upstream": {}},
    }
    return replace(stage, payload=payload)


@dataclass
class _Probe:
    """One training under measurement."""

    learner: bases.Learner
    data: loop.TrainingData
    settings: loop.LoopSettings
    seed: int
    limits: Limits
    recorder: Recorder | None
    sections: Sections = field(default_factory=Sections)
    steps: list[Mapping[str, float]] = field(default_factory=list)
    hooks: dict[str, list[float]] = field(default_factory=dict)
    taken: int = 0
    began: float = 0.0

    def run(self) -> Measured:
        """Measure steps, then batches, then predicting."""
        enough = replace(self.settings, epochs=10**6, patience=0)
        with watching(self.sections), self._instrumented(), self._recording(), suppress(_EnoughError):
            loop.fit(self.learner, self.data, enough, seed=self.seed)
        if not self.steps:
            raise UserError(f"the training ended after {self.taken} steps, too few to measure any")
        profile = TrainingProfile(
            steps=len(self.steps),
            sections={"batch": self._batch(), **self._medians()},
            fit_start=sum(self.hooks.get("on_fit_start", ())),
            epoch_hooks=median(self.hooks.get("on_epoch_start", [0.0])),
            evaluation=self._evaluation(),
            steps_per_epoch=self.per_epoch,
            epochs=self.settings.epochs,
            parameters=sum(value.numel() for value in self.learner.parameters()),
        )
        done = self.recorder
        return Measured(profile) if done is None else Measured(profile, done.operations, done.functions, done.trace)

    @property
    def per_epoch(self) -> int:
        """Steps of an epoch."""
        settings = self.settings
        return expected_steps(
            self.data.train,
            settings.batch_size,
            groups_per_batch=settings.groups_per_batch,
            drop_last=settings.drop_last,
        )

    @contextmanager
    def _instrumented(self) -> Iterator[None]:
        """The learner's methods, measured from outside; the loop's calls of them are left as they are."""
        shift = self.limits.epoch
        names = ("on_fit_start", "on_epoch_start")
        inner = {name: getattr(self.learner, name) for name in (*names, "training_step", "loss")}

        def hook(name: str) -> Callable[[Any], None]:
            def call(graphs: Any) -> None:
                if name == "on_epoch_start" and shift:
                    self.learner.epoch += shift
                    self.learner.step += 0 if self.taken else shift * self.per_epoch
                began = time.process_time()
                inner[name](graphs)
                self.hooks.setdefault(name, []).append(time.process_time() - began)

            return call

        def step(batch: Batch, optimizers: list[torch.optim.Optimizer]) -> Any:
            self.sections.taken()
            with self.sections.section(OTHER):
                told = inner["training_step"](batch, optimizers)
            self._after()
            return told

        own = {**{name: hook(name) for name in names}, "training_step": step}
        own["loss"] = self.sections.timed(LOSS, inner["loss"])
        for name, function in own.items():
            object.__setattr__(self.learner, name, function)
        try:
            yield
        finally:
            for name in own:
                object.__delattr__(self.learner, name)

    @contextmanager
    def _recording(self) -> Iterator[None]:
        try:
            yield
        finally:
            if self.recorder is not None:
                self.recorder.close()

    def _after(self) -> None:
        self.taken += 1
        if self.taken == WARM_UP:
            self.began = time.perf_counter()
        if self.taken <= WARM_UP:
            return
        late = time.perf_counter() - self.began > self.limits.seconds
        if len(self.steps) < self.limits.steps and not (late and self.steps):
            self.steps.append(self.sections.taken())
        elif self.recorder is None or not self.recorder.advance():
            raise _EnoughError

    def _medians(self) -> dict[str, float]:
        return {name: median(step.get(name, 0.0) for step in self.steps) for name in STEP_SECTIONS}

    def _batch(self) -> float:
        """Seconds of gathering one batch: graphs are gathered many batches at a time, hence over a whole epoch."""
        batches = epoch_batches(
            self.data.train,
            self.settings.batch_size,
            generator(self.seed, "order"),
            groups_per_batch=self.settings.groups_per_batch,
            drop_last=self.settings.drop_last,
            reorder=self.learner.training_order,
        )
        began = time.process_time()
        count = sum(1 for _ in self._in_time(iter(batches)))
        self.sections.wait()
        return (time.process_time() - began) / max(count, 1)

    def _evaluation(self) -> float:
        """Seconds of predicting every validation split, from as many batches as there is time for."""
        total = 0.0
        for graphs in self.data.validation.values():
            batches = list(self._in_time(graphs.batches(self.settings.eval_batch_size)))
            began = time.process_time()
            seen = 0

            def counted(batches: list[Batch] = batches) -> Iterator[Batch]:
                nonlocal seen
                for batch in self._in_time(iter(batches)):
                    seen += batch.num_graphs
                    yield batch

            loop.predict(self.learner, counted())
            self.sections.wait()
            total += (time.process_time() - began) * len(graphs) / max(seen, 1)
        return total

    def _in_time(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Batches until the time is up, at least one."""
        end = time.perf_counter() + self.limits.seconds / 2
        first = next(batches, None)
        if first is not None:
            yield first
            yield from takewhile(lambda _: time.perf_counter() < end, batches)
