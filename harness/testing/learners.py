"""Checks of a learner's training, on ordinary data and on data that are odd but occur."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from harness.data import TaskKind
from harness.errors import BenchError
from harness.testing import learner_predictions
from harness.testing import rig as common
from harness.testing.hyperparameters import pairs
from harness.testing.learner_rig import LearnerRig, LearnerTrial
from harness.testing.report import CheckFunction, Skip
from harness.testing.rig import (
    OTHER_SEED,
    SEED,
    another_device,
    differences,
    different_tensors,
    global_state,
    hyperparameters_matter,
    same_seed,
)
from harness.testing.toys import TASKS, PlainERM, Toy, one_node, toy, without_edges


def trains(rig: LearnerRig) -> Iterator[str]:
    """An ordinary training runs; loss terms, the result of each step and all gradients are finite."""
    yield from (f"{what} is not finite" for what in rig.outcome().watch.not_finite)


def live_terms(rig: LearnerRig) -> Iterator[str]:
    """Each loss term requires gradient and has one that is not zero at some step."""
    yield from _dead_terms(rig.outcome())


def _dead_terms(trial: LearnerTrial) -> Iterator[str]:
    watch = trial.watch
    for name in sorted(watch.not_live):
        yield f"the term '{name}' does not require gradient: it is detached, or computed without the network"
    for name in sorted(watch.terms - watch.not_live - watch.live):
        if trial.learner.weight(name):
            yield f"the term '{name}' has a gradient of exactly zero in all {watch.steps} steps"


def weights_matter(rig: LearnerRig) -> Iterator[str]:
    """A term with a weight has a gradient where the weight is not zero, and changing the weight changes training."""
    weighted = {name: declared.weight_of for name, declared in rig.cls.hparams.items() if declared.weight_of}
    if not weighted:
        raise Skip("no hyperparameter is the weight of a loss term")
    rig.outcome()
    for name, term in weighted.items():
        compared = pairs(rig.cls, name, rig.base)
        heavy = next((values for pair in compared for values in pair if values[name]), None)
        if heavy is None:
            yield f"'{name}' has no value other than zero to try; give one in `probes`"
            continue
        watch = rig.outcome(heavy).watch
        if term not in watch.terms:
            yield f"loss() has no term '{term}', which '{name}' weighs, with {_brief(heavy)}"
        elif term not in watch.live:
            yield f"the term '{term}' has no gradient in {watch.steps} steps with {_brief(heavy)}"
        if not any(rig.differ(one, two) for one, two in compared):
            tried = ", ".join(str(two[name]) for _, two in compared)
            yield f"training is the same for {name}={compared[0][0][name]} and {tried}: the weight has no effect"


def every_module_learns(rig: LearnerRig) -> Iterator[str]:
    """Each module whose parameters require gradient gets one within three epochs."""
    yield from _unreached(rig.outcome())


def _unreached(trial: LearnerTrial) -> Iterator[str]:
    watch = trial.watch
    for name, module in trial.learner.named_modules():
        own = [f"{name}.{n}" if name else n for n, p in module.named_parameters(recurse=False) if p.requires_grad]
        if own and not watch.reached & set(own):
            yield f"no parameter of '{name or 'the learner'}' ({', '.join(own)}) got a gradient in {watch.steps} steps"


def each_mode_learns(rig: LearnerRig) -> Iterator[str]:
    """Terms are live and modules get gradients also with each other choice of a text hyperparameter."""
    modes = [name for name, declared in rig.cls.hparams.items() if declared.type == "str" and declared.choices]
    if not modes:
        raise Skip("no hyperparameter is a choice between texts")
    rig.outcome()
    for name in modes:
        for _, values in pairs(rig.cls, name, rig.base):
            try:
                trial = rig.outcome(values)
            except BenchError:
                continue  # refused, which is allowed, or diverged, which `hyperparameters_matter` reports
            for problem in (*_dead_terms(trial), *_unreached(trial)):
                yield f"with {_brief(values)}: {problem}"


def other_settings(rig: LearnerRig) -> Iterator[str]:
    """With each other setting that was tried, values are finite, modules in training mode, and global state is safe."""
    rig.outcome()
    for values, trial in rig.trials():
        not_finite = [f"{what} is not finite" for what in trial.watch.not_finite]
        problems = [*not_finite, *_modes(trial), *trial.draws] if values else []
        yield from (f"with {_brief(values)}: {problem}" for problem in problems)


def frozen_stays(rig: LearnerRig) -> Iterator[str]:
    """Parameters that require no gradient stay bit for bit the same."""
    end = rig.outcome().state
    start = rig.prepare(rig.toy()).learner
    frozen = {name: value.detach() for name, value in start.named_parameters() if not value.requires_grad}
    if not frozen:
        raise Skip("nothing is frozen")
    yield from (f"'{name}' changed in training" for name in different_tensors(frozen, end))


def training_mode(rig: LearnerRig) -> Iterator[str]:
    """After each step every trained module is in training mode."""
    yield from _modes(rig.outcome())


def _modes(trial: LearnerTrial) -> Iterator[str]:
    yield from (f"'{name}' is in evaluation mode after a training step" for name in trial.watch.left_in_eval)


def risk_on_logits(rig: LearnerRig) -> Iterator[str]:
    """Labels are compared with logits of the head's width, and the head gets a gradient from some term."""
    trial, data = rig.outcome(), rig.toy()
    expected = (len(data.train), data.task.outputs)
    yield from (f"{what}, expected {data.task.outputs} columns" for what in trial.watch.widths)
    shape = tuple(trial.outputs["predictions of training graphs"].shape)
    if shape != expected:
        yield f"predictions have shape {shape}, expected {expected}"
    head = getattr(trial.learner, "head", None)
    if isinstance(head, nn.Module) and not any(name.startswith("head.") for name in trial.watch.reached):
        yield "no loss term depends on the classifier's head: its gradient is zero in every step"


def equals_erm(rig: LearnerRig) -> Iterator[str]:
    """With the values of ``equals_erm``, backbone, head and predictions are bit for bit those of plain ERM."""
    values = rig.cls.equals_erm
    if not values:
        raise Skip("declares no values with which it is ERM")
    rig.outcome()
    trial, erm = rig.outcome(values), LearnerRig(PlainERM).train_on(rig.toy())
    missing = [name for name in erm.state if name not in trial.state]
    if missing:
        yield f"has no '{missing[0]}', which ERM has"
    if changed := differences(erm, trial):
        yield f"with {_brief(values)}, {len(changed)} tensors differ from ERM's, such as '{changed[0]}'"


def other_seed(rig: LearnerRig) -> Iterator[str]:
    """Another seed starts from other weights, and ends elsewhere."""
    yield from common.other_seed(rig)
    one, two = (rig.prepare(rig.toy(), seed=seed).learner for seed in (SEED, OTHER_SEED))
    for (name, left), right in zip(one.named_parameters(), two.parameters(), strict=True):
        if left.dim() > 1 and torch.equal(left, right) and not bool((left == left.flatten()[0]).all()):
            yield f"'{name}' starts from the same random weights whatever the seed"
            return


def batch_of_two(rig: LearnerRig) -> Iterator[str]:
    """Batches of two graphs."""
    yield from _finite(rig, rig.toy(), batch_size=2)


def one_environment(rig: LearnerRig) -> Iterator[str]:
    """Batches with graphs of one environment only."""
    yield from _finite(rig, _with_env(rig, torch.zeros_like, 2))


def absent_environment(rig: LearnerRig) -> Iterator[str]:
    """An environment between two others has no graph in the batch, and some graphs have no environment."""

    def with_gap(env: Tensor) -> Tensor:
        gapped = env * 2
        gapped[::5] = -1
        return gapped

    yield from _finite(rig, _with_env(rig, with_gap, 3))


def _with_env(rig: LearnerRig, change: Callable[[Tensor], Tensor], count: int) -> Toy:
    if "environments" not in rig.cls.needs:
        raise Skip("needs no environments")
    if rig.cls.needs - {"environments"}:
        raise Skip("its ids come with what its environment provides")
    data = rig.toy()
    assert data.train.env is not None
    return replace(data, train=replace(data.train, env=change(data.train.env)), environments=count)


def one_class(rig: LearnerRig) -> Iterator[str]:
    """Batches with graphs of one class only."""
    data = rig.toy()
    assert data.train.y is not None
    same = torch.where(torch.isnan(data.train.y), data.train.y, torch.ones_like(data.train.y))
    yield from _finite(rig, replace(data, train=replace(data.train, y=same)))


def graphs_without_edges(rig: LearnerRig) -> Iterator[str]:
    """Some graphs have no edges, and batches in which none has."""
    for which, every in (("some graphs", 3), ("all graphs", 1)):
        problems = _finite(rig, rig.toy().changed(without_edges, every))
        yield from (f"{which} without edges: {problem}" for problem in problems)


def graphs_of_one_node(rig: LearnerRig) -> Iterator[str]:
    """Some graphs are a single node."""
    yield from _finite(rig, rig.toy().changed(one_node))


def graphs_without_parts(rig: LearnerRig) -> Iterator[str]:
    """A learner that reads parts also trains on graphs that have none."""
    if not rig.cls.reads_parts:
        raise Skip("reads no parts")
    yield from _finite(rig, toy(rig.task))


def each_task(rig: LearnerRig) -> Iterator[str]:
    """Each declared task trains, multi-task ones with missing labels and a graph without any."""
    for kind in sorted(rig.cls.tasks):
        if kind not in TASKS:
            yield f"'{kind}' in `tasks` is none of {', '.join(TASKS)}"
            continue
        known: TaskKind = TASKS[kind].kind
        yield from (f"{kind}: {problem}" for problem in _finite(rig, rig.toy(known)))


def _finite(rig: LearnerRig, data: Toy, batch_size: int = 8) -> Iterator[str]:
    """Train for an epoch; terms, gradients, weights and predictions must be finite."""
    rig.outcome()
    trial = rig.train_on(data, epochs=1, batch_size=batch_size)
    after = {**trial.state, **trial.outputs}
    yield from (f"{what} is not finite" for what in trial.watch.not_finite)
    yield from (
        f"'{name}' is not finite after training"
        for name, value in after.items()
        if value.is_floating_point() and not bool(torch.isfinite(value).all())
    )


def _brief(values: object) -> str:
    return ", ".join(f"{n}={v}" for n, v in dict(values).items()) if values else "its defaults"  # type: ignore[call-overload]


CHECKS: tuple[CheckFunction, ...] = (
    trains,
    live_terms,
    weights_matter,
    every_module_learns,
    each_mode_learns,
    frozen_stays,
    training_mode,
    risk_on_logits,
    equals_erm,
    same_seed,
    other_seed,
    global_state,
    *learner_predictions.CHECKS,
    batch_of_two,
    one_environment,
    absent_environment,
    one_class,
    graphs_without_edges,
    graphs_of_one_node,
    graphs_without_parts,
    each_task,
    hyperparameters_matter,
    other_settings,
    another_device,
)
