"""Checks that a component works where its data are, tried on a device that is not there (see ``elsewhere``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harness.errors import BenchError
from harness.testing import encoders, environments
from harness.testing import rig as bench
from harness.testing.backbones import BackboneSubject, batch
from harness.testing.encoders import EncoderSubject
from harness.testing.environments import EnvironmentSubject
from harness.testing.fake_device import ELSEWHERE, elsewhere
from harness.testing.learner_case import LearnerSubject
from harness.testing.settings import each_choice
from harness.training.loop import LoopSettings, fit

Values = dict[str, Any]


def learner_on_another_device(subject: LearnerSubject) -> Iterator[str]:
    """Training works where the data are, such as on a GPU, with each choice, and gives what it gives on the CPU.

    Cause: a tensor made without `device=`, as in `torch.zeros(n)` for `torch.zeros(n, device=batch.x.device)`; a draw
    from `self.rng` without `.to(device)`; `.numpy()` without `.cpu()`; a tensor of the learner that is no buffer.

    Look at: loss, forward, training_step, on_fit_start, on_epoch_start, training_order, build
    """
    subject.watched()
    for values in each_choice(subject.cls, subject.base):
        try:
            state = _trained(subject, values)
        except BenchError:
            continue  # refused, which is allowed, or diverged, which `hyperparameters_matter` tells
        except (RuntimeError, TypeError, ValueError) as error:
            if not values:
                raise
            yield f"with {values}: {type(error).__name__}: {error}"
            continue
        if not values and bench.different_tensors(state, subject.result().state):
            yield "it ends with other weights than on the CPU"


def encoder_on_another_device(subject: EncoderSubject) -> Iterator[str]:
    """Training and embedding work where the graphs are, such as on a GPU, with each choice, as on the CPU.

    Cause: the module is not moved (`module.to(graphs.x.device)`), a tensor made without `device=`, or a draw from
    `self.rng` without `.to(device)`.

    Look at: fit, embed
    """
    for values in each_choice(subject.cls, subject.base):
        try:
            with elsewhere():
                fitted = encoders.fit(
                    subject.cls, {**subject.base, **values}, encoders.graphs().to(ELSEWHERE), bench.SEED
                )
                found = fitted.embeddings[-1].cpu()
        except BenchError:
            continue
        except (RuntimeError, TypeError, ValueError) as error:
            if not values:
                raise
            yield f"with {values}: {type(error).__name__}: {error}"
            continue
        if not torch.equal(found, subject.fitted(values).embeddings[-1]):
            yield f"{f'with {values}, ' if values else ''}embeddings are others than on the CPU"


def environment_on_another_device(subject: EnvironmentSubject) -> Iterator[str]:
    """Ids come where the graphs are, such as from a GPU, and are those of the CPU.

    Cause: networks that are not moved (`.to(train.x.device)`), a tensor made without `device=`, or a draw from
    `self.rng` without `.to(device)`.

    Look at: assign, assign_batch
    """
    expected = subject.assigned()
    component = subject.cls(**subject.base)
    with elsewhere():
        there = replace(subject.toy, train=subject.toy.train.to(ELSEWHERE))
        found = {name: value.cpu() for name, value in environments.run(component, there).items()}
    yield from (f"'{name}' differs from the CPU's" for name in expected if not torch.equal(found[name], expected[name]))


def backbone_on_another_device(subject: BackboneSubject) -> Iterator[str]:
    """Node embeddings and gradients come where the graphs are, such as from a GPU.

    Cause: a tensor made without `device=`, or one of the network that is no parameter and no buffer.

    Look at: forward, build
    """
    for values in each_choice(subject.cls, subject.base):
        network = subject.make(values)
        try:
            with elsewhere():
                network.to(ELSEWHERE)(batch().to(ELSEWHERE)).sum().backward()
        except RuntimeError as error:
            if not values:
                raise
            yield f"with {values}: {error}"


def _trained(subject: LearnerSubject, values: Values) -> dict[str, Tensor]:
    """The state, on the CPU, of a learner trained elsewhere; with settings of its own for one step only."""
    epochs, size = (1, 256) if values else (bench.EPOCHS, bench.BATCH)
    prepared = bench.prepare(subject.cls, {**subject.base, **values}, subject.toy(), epochs=epochs, batch_size=size)
    with elsewhere():
        moved(prepared)
        fit(prepared.learner, prepared.data, LoopSettings(epochs, size, 256), seed=prepared.seed)
        return {name: value.cpu() for name, value in prepared.learner.state_dict().items()}


def moved(prepared: bench.Prepared, device: str = ELSEWHERE) -> bench.Prepared:
    """A learner and all that it is handed on another device, as the stage ``train`` puts them there."""
    learner, data = prepared.learner.to(device), prepared.data
    learner.annotations = {name: value.to(device) for name, value in learner.annotations.items()}
    learner.upstream_outputs = {role: bench.placed(item, device) for role, item in learner.upstream_outputs.items()}
    data.train = data.train.to(device)
    data.validation = {split: graphs.to(device) for split, graphs in data.validation.items()}
    if data.spurious is not None:
        data.spurious = data.spurious.to(device)
        for name in ("model_scores", "model_weights"):
            setattr(learner, name, getattr(learner, name).to(device))
    return prepared
