"""The training loop: one learner, one split of training graphs, checkpoints chosen on validation predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from harness.errors import DivergedError, UserError
from harness.graphs import Batch, PackedGraphs
from harness.randomness import generator, seeded
from harness.registry.returned import expect, expect_array, is_number
from harness.suite.settings import LAST, TrainSettings, best_rule
from harness.training.bases import Decorrelator, Learner
from harness.training.sampler import MIN_BATCH, Epoch, epoch_batches, steps_per_epoch

State = dict[str, Tensor]


@dataclass
class TrainingData:
    """Everything a training may see.

    Attributes:
        train: training graphs with labels, and environment ids where the method asked for them.
        validation: split -> graphs without labels.
        score: (split, logits) -> the validation score, or None where it is undefined. Holds the validation labels.
        monitor: the validation split handed to ``on_epoch_end`` and used by early stopping.
        spurious: (n, K, C) for decorrelators.
        assign_batch: gives a batch its environment ids, for environments drawn per batch.
    """

    train: PackedGraphs
    validation: Mapping[str, PackedGraphs]
    score: Callable[[str, Tensor], float | None]
    monitor: str
    spurious: Tensor | None = None
    assign_batch: Callable[[Batch], Tensor] | None = None


@dataclass
class Checkpoint:
    """Weights chosen by one rule."""

    epoch: int
    score: float | None
    state: State


@dataclass
class Trained:
    """The result of a training: a row per epoch, and a checkpoint per rule."""

    history: list[dict[str, Any]] = field(default_factory=list)
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    ever_finite: bool = False
    """True if the validation predictions were finite after at least one epoch."""


def total_steps(train: PackedGraphs, settings: TrainSettings) -> int:
    """Return the optimizer steps of a training without early stopping that takes each graph once an epoch.

    Where batches are bounded by nodes, their number varies a little from epoch to epoch: that of one fixed order.
    """
    size, groups, drop_last = settings.batch_size, settings.groups_per_batch, settings.drop_last
    if train.max_batch_nodes and not groups:
        order = torch.Generator().manual_seed(0)
        return settings.epochs * len(epoch_batches(train, size, order, drop_last=drop_last))
    return settings.epochs * steps_per_epoch(len(train), size, groups_per_batch=groups, drop_last=drop_last)


def fit(learner: Learner, data: TrainingData, settings: TrainSettings, *, seed: int) -> Trained:
    """Train a learner that is set up, and return its history and checkpoints.

    Raises:
        UserError: the training split cannot fill a single batch of two graphs.
        DivergedError: no checkpoint could be chosen because every score or the weights were not finite.
    """
    if total_steps(data.train, settings) == 0:
        raise UserError(
            f"the training split has {len(data.train)} graph(s) and batch_size is {settings.batch_size}; "
            f"a training batch needs at least {MIN_BATCH}"
        )
    order = generator(seed, "order")
    watch = {split: list(graphs.batches(settings.eval_batch_size)) for split, graphs in data.validation.items()}
    trained = Trained()
    with seeded(seed, "augmentation"):
        optimizers = _optimizers(learner)
        if isinstance(learner, Decorrelator) and data.spurious is not None:
            learner.spurious = data.spurious
        learner.on_fit_start(data.train)
        first = learner.selectable_from
        expect(isinstance(first, int) and first >= 0, learner, "selectable_from", first, "a whole number from 0")
        selectable = min(first, settings.epochs - 1)
        waited = 0
        for epoch in range(settings.epochs):
            learner.epoch = epoch
            if epoch and epoch == settings.lr_drop_epoch:
                for group in (group for optimizer in optimizers for group in optimizer.param_groups):
                    group["lr"] *= settings.lr_drop_factor
            batches, sums = _begin_epoch(learner, data, settings, order), dict[str, Tensor]()
            for learner.epoch_step, batch in enumerate(batches):
                _complete(batch, data)
                _add_terms(learner, sums, learner.training_step(batch, optimizers))
                learner.step += 1
            row = {"epoch": epoch, **{name: _plain(float(value) / len(batches)) for name, value in sums.items()}}
            improved = _validate(learner, data, watch, row, trained, selectable)
            trained.history.append(row)
            if not _finite(learner):
                break
            waited = 0 if improved or epoch < max(settings.warmup, selectable) else waited + 1
            if settings.patience and waited >= settings.patience:
                break
    _close(learner, trained)
    return trained


def _optimizers(learner: Learner) -> list[torch.optim.Optimizer]:
    found: Any = learner.optimizers()
    listed = isinstance(found, (list, tuple)) and bool(found)
    proper = listed and all(isinstance(item, torch.optim.Optimizer) for item in found)
    expect(proper, learner, "optimizers", found, "a list of torch optimizers, at least one")
    return list(found)


def _begin_epoch(learner: Learner, data: TrainingData, settings: TrainSettings, order: torch.Generator) -> Epoch:
    """Call the learner's hooks of an epoch's start, and return the batches."""
    learner.train()
    learner.on_epoch_start(data.train)
    learner.train()
    batches = epoch_batches(
        data.train,
        settings.batch_size,
        order,
        groups_per_batch=settings.groups_per_batch,
        drop_last=settings.drop_last,
        reorder=partial(_order, learner),
    )
    learner.epoch_steps = len(batches)
    return batches


def _complete(batch: Batch, data: TrainingData) -> None:
    """Add the spurious probabilities and the environments drawn per batch."""
    if data.spurious is not None:
        batch.spurious = data.spurious[batch.index]
    if data.assign_batch is not None:
        batch.env = data.assign_batch(batch)


def _add_terms(learner: Learner, sums: dict[str, Tensor], terms: Any) -> None:
    """Add a step's loss terms to those of the epoch."""
    expect(isinstance(terms, Mapping), learner, "training_step", terms, "a dict of the loss terms by name")
    for name, term in terms.items():
        if name not in sums:
            scalar = is_number(term) or (isinstance(term, Tensor) and term.numel() == 1)
            expect(scalar, learner, f"training_step, '{name}'", term, "a number or a tensor of one")
        sums[name] = sums[name] + term if name in sums else term


def _order(learner: Learner, order: Tensor) -> Tensor:
    """Return the order that ``training_order`` makes of a random one."""
    found = learner.training_order(order)
    if found is not order:
        expect_array(learner, "training_order", found, (None,), "int64")
        low, high = (int(found.min()), int(found.max())) if len(found) else (0, -1)
        proper = len(found) >= MIN_BATCH and low >= 0 and high < len(order)
        allowed = f"at least {MIN_BATCH} positions of training graphs, from 0 to {len(order) - 1}"
        expect(proper, learner, f"training_order, from {low} to {high}", found, allowed)
    return found


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _validate(
    learner: Learner,
    data: TrainingData,
    watch: Mapping[str, list[Batch]],
    row: dict[str, Any],
    trained: Trained,
    selectable: int,
) -> bool:
    """Score every validation split, keep the first best of each; return True if the monitored one improved."""
    improved = False
    for split, batches in watch.items():
        logits = predict(learner, batches).cpu()
        score = data.score(split, logits)
        row[f"score/{split}"] = score
        trained.ever_finite = trained.ever_finite or bool(torch.isfinite(logits).all())
        rule = best_rule(split)
        known = trained.checkpoints.get(rule)
        if score is None or learner.epoch < selectable:
            continue
        if known is None or known.score is None or score > known.score:
            trained.checkpoints[rule] = Checkpoint(learner.epoch, score, _state(learner))
            improved = improved or split == data.monitor
    if learner.reads_validation_score:  # no other hears of it, as its row has no mark
        learner.on_epoch_end(row.get(f"score/{data.monitor}"))
    return improved


def _close(learner: Learner, trained: Trained) -> None:
    """Add the last checkpoint, unless the weights are not finite; complain where nothing is left."""
    epoch = trained.history[-1]["epoch"]
    if not trained.ever_finite:
        raise DivergedError(f"the validation predictions were not finite after any of {epoch + 1} epochs")
    if _finite(learner):
        trained.checkpoints[LAST] = Checkpoint(epoch, None, _state(learner))
    elif not trained.checkpoints:
        raise DivergedError(
            f"the weights were not finite after epoch {epoch + 1} and no earlier checkpoint had a score"
        )


def _state(learner: Learner) -> State:
    return {name: value.detach().to("cpu", copy=True) for name, value in learner.state_dict().items()}


def _finite(learner: Learner) -> bool:
    found = [torch.isfinite(value).all() for value in learner.parameters()]
    return not found or bool(torch.stack(found).all())  # asked once, as a GPU is waited for each time


def predict(learner: Learner, batches: Iterable[Batch]) -> Tensor:
    """Return (n, C) logits in evaluation mode, without gradient."""
    was_training = learner.training
    learner.eval()
    with torch.no_grad():
        logits = torch.cat([_logits(learner, batch) for batch in batches])
    learner.train(was_training)
    return logits


def _logits(learner: Learner, batch: Batch) -> Tensor:
    found: Tensor = learner(batch)
    expect_array(learner, "forward", found, (batch.num_graphs, learner.info.task.outputs))
    return found
